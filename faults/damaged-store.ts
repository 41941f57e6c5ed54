/** A process that examines damaged stores, and can be killed when it hangs; see `bit-flips.ts`. */

import { main } from '../src/cli/main.ts';
import type { NewPlant } from '../src/contract/plant.ts';
import { openReader } from '../src/store/open-store.ts';
import { StoreRejected, StoreUnavailable } from '../src/store/plant-store.ts';
import { parseSeal } from '../src/store/seal.ts';
import { verifyRevisions } from '../src/store/verification.ts';
import type { LoggedResponse } from '../test/harness/client-log.ts';
import { LoggingClient } from '../test/harness/logging-client.ts';
import { type Finished, runInTime, startServe } from '../test/harness/program.ts';
import { startTestService } from '../test/harness/running-service.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';

/** What an undamaged store contains. */
export interface Content {
  token: string;
  /** Each plant as it was stored last. */
  plants: NewPlant[];
}

export interface Examination {
  database: string;
  content: Content;
  seed: number;
  /** Whether to start the program for each command, as an operator does. It takes far longer. */
  asProgram: boolean;
  /** Whether the store is undamaged. What it shows is then expected of the damaged ones. */
  isFirst: boolean;
}

export interface Findings {
  /** Broken promises. */
  faults: string[];
  /** The parts that noticed the damage. Without one, and without faults, it was harmless. */
  noticedBy: string[];
  /** What they said, without numbers. */
  messages: string[];
  /** Facts to count. */
  facts: string[];
}

/** Sent plants: with damaged or missing revisions, with others, and new ones. */
const SENT_MAX = { affected: 8, others: 6, added: 3 };

/** What the undamaged store shows. */
interface Expected {
  seal: string;
  /** The lines of the exports. */
  latest: Set<string>;
  revisions: Set<string>;
  tokens: string;
}

/** Ends of a line of `export --revisions`: the label of the token, and all that is no plant. */
const LABEL = /,"recorded_by":"[^"]*"\}$/;
const RECORD = /,"revision":[0-9]+,"recorded_at":"[^"]*","recorded_by":"[^"]*"\}$/;

/** The message of the comparison with an earlier seal. */
const AGAINST = 'plant-store: the store does not hold exactly ';

let expected: Expected | undefined;
let output: Pick<Finished, 'stdout' | 'stderr'> | undefined;
for (const name of ['stdout', 'stderr'] as const) {
  // Every run of a command adds a listener.
  process[name].setMaxListeners(0);
  const write = process[name].write.bind(process[name]);
  process[name].write = ((chunk: string | Uint8Array, ...rest: []) => {
    if (output === undefined) return write(chunk, ...rest);
    output[name] += chunk;
    return true;
  }) as typeof write;
}

/** Runs a command in this process. */
async function runHere(args: string[]): Promise<Finished> {
  const texts = { stdout: '', stderr: '' };
  output = texts;
  process.exitCode = 0;
  await main([process.execPath, 'plant-store', ...args]);
  output = undefined;
  return { ...texts, exitCode: Number(process.exitCode) };
}

class StoreExamination {
  readonly #order: Examination;
  readonly #findings: Findings = { faults: [], noticedBy: [], messages: [], facts: [] };

  constructor(order: Examination) {
    this.#order = order;
  }

  async run(): Promise<Findings> {
    const { isFirst, content } = this.#order;
    const against = isFirst ? [] : ['--against', expected!.seal];
    const { stdout: seal } = await this.#command('verify', ...against);
    const latest = await this.#lines();
    const revisions = await this.#lines('--revisions');
    const tokens = await this.#tokens();
    if (isFirst) {
      expected = { seal: seal.trim(), latest: new Set(latest), revisions: new Set(revisions), tokens };
      if (latest.join('\n') !== content.plants.map(lineOf).join('\n'))
        this.#fault('the store has other plants');
    }
    const { latest: latestExpected, revisions: revisionsExpected } = expected!;
    this.#wrong('export', latest, revisionsExpected, latestExpected);
    this.#wrong('export --revisions', revisions, revisionsExpected);
    const shown = new Set(latest);
    const affected = content.plants.filter(plant => !shown.has(lineOf(plant)));
    for (const { id } of affected.slice(0, 3)) await this.#show(id);
    const isWhole = latest.length === latestExpected.size && revisions.length === revisionsExpected.size;
    const { noticedBy, facts } = this.#findings;
    if (!isWhole || affected.length > 0) {
      facts.push('content changed');
      if (noticedBy.length === 0)
        this.#fault(`${affected.length} plants missing or different, and nothing says so`);
      else if (!noticedBy.includes('export'))
        facts.push(`export incomplete, noticed by ${noticedBy.toSorted().join(', ')}`);
      if (!noticedBy.some(part => part.startsWith('verify')))
        this.#fault('verify holds without some revisions');
    }
    if (tokens !== expected!.tokens) {
      facts.push('tokens changed');
      if (noticedBy.length === 0) this.#fault('a token changed, and nothing says so');
    }
    const wasSound = noticedBy.length === 0;
    await this.#serve(affected);
    const holds = await this.#stillHolds();
    if (holds && facts.includes('content changed'))
      this.#fault('verify --against holds after the service wrote');
    if (!holds && wasSound) this.#fault('the service wrote over stored plants');
    return this.#findings;
  }

  #fault(text: string): void {
    this.#findings.faults.push(text);
  }

  #noticed(part: string, message: string): void {
    const { noticedBy, messages } = this.#findings;
    if (!noticedBy.includes(part)) noticedBy.push(part);
    const common = message
      .replace(/\(.*\)/, '(…)')
      .replaceAll(/\S*\/\S+/g, 'PATH')
      .replaceAll(/-?[0-9a-f]*[0-9][0-9a-f]*/g, '#');
    messages.push(`${part}: ${common.split('\n')[0]!.slice(0, 150)}`);
  }

  async #command(command: string, ...args: string[]): Promise<Finished> {
    const { database, asProgram } = this.#order;
    const all = [...command.split(' '), '--database', database, ...args];
    const finished = await (asProgram ? runInTime(all, { nodeArgs: process.execArgv }) : runHere(all));
    const { exitCode, stderr } = finished;
    if ((exitCode !== 0 && exitCode !== 1) || /internal error|^ +at /m.test(stderr))
      this.#fault(`${command} ended with ${exitCode}: ${stderr.slice(0, 500)}`);
    if (exitCode !== 0 && !/there is no (?:intact )?plant with/.test(stderr)) {
      const errors = stderr.split('\n').filter(line => line.startsWith('plant-store: '));
      const isOnlyAgainst = errors.length > 0 && errors.every(line => line.startsWith(AGAINST));
      this.#noticed(isOnlyAgainst ? 'verify --against' : command, errors[0] ?? stderr);
    }
    return finished;
  }

  async #lines(...args: string[]): Promise<string[]> {
    const { stdout } = await this.#command('export', '--format', 'jsonl', '--ids', 'text', ...args);
    return stdout.split('\n').slice(0, -1);
  }

  async #tokens(): Promise<string> {
    const { stdout } = await this.#command('token list', '--json');
    return stdout;
  }

  /** Finds lines that the undamaged store does not have. */
  #wrong(command: string, lines: string[], revisions: Set<string>, latest = revisions): void {
    const wrong = lines.filter(line => !latest.has(line));
    if (wrong.length === 0) return;
    const [pattern, fact] = latest === revisions ? [LABEL, 'wrong label'] : [RECORD, 'outdated revision'];
    const contents = new Set([...revisions].map(line => line.replace(pattern, '')));
    for (const line of wrong) {
      if (contents.has(line.replace(LABEL, '').replace(/\}$/, '')))
        this.#findings.facts.push(`${command}: ${fact}`);
      else this.#fault(`${command} prints ${line.slice(0, 200)}`);
    }
  }

  async #show(id: bigint): Promise<void> {
    const { stdout } = await this.#command('show', '--json', '--ids', 'text', '--', String(id));
    if (stdout === '') return;
    const lines = JSON.parse(stdout).revisions.map((revision: unknown) => JSON.stringify(revision));
    this.#wrong('show', lines, expected!.revisions);
  }

  async #serve(affected: NewPlant[]): Promise<void> {
    const { database, content, seed, asProgram } = this.#order;
    const random = seededRandom(seed);
    const others = new Set<NewPlant>();
    while (others.size < SENT_MAX.others) others.add(content.plants[random(content.plants.length)]!);
    const stored = new Set([...affected.slice(0, SENT_MAX.affected), ...others]);
    const added = [...others]
      .slice(0, SENT_MAX.added)
      .map(({ id }) => ({ id: id ^ 0x55aa0001n, name: 'added' }));
    const confirmed: [plant: NewPlant, outcome: string | undefined][] = [];
    try {
      await using service = await (asProgram
        ? startServe(database, [], { nodeArgs: process.execArgv })
        : startTestService({ database }));
      const send = async (plant: NewPlant): Promise<void> => {
        const client = new LoggingClient(service.url, content.token, []);
        const { response } = await client.send(plant);
        await client.close();
        this.#assess(plant, stored.has(plant), response);
        if (response?.status === 200) confirmed.push([plant, response.outcome]);
      };
      await Promise.all([...stored, ...added].map(send));
    } catch (error) {
      const { message } = error as Error;
      const isExplained = asProgram
        ? / ended with 1: .*plant-store: (?!unexp)/s.test(message)
        : isExpected(error);
      if (isExplained) this.#noticed('service', message.replace(/^serve ended with 1: /, ''));
      else this.#fault(`service: ${(error as Error).stack?.slice(0, 500)}`);
    }
    for (const each of confirmed) await this.#readBack(...each);
  }

  #assess({ id }: NewPlant, isStored: boolean, response: LoggedResponse | undefined): void {
    const { status = 0, outcome = String(status) } = response ?? {};
    const { facts, noticedBy } = this.#findings;
    facts.push(`${isStored ? 'stored' : 'new'} plant: ${outcome}`);
    if (status === 401 || status === 503) this.#noticed('service', `status ${outcome}`);
    else if (status !== 200) this.#fault(`the service responds to plant ${id} with ${outcome}`);
    // To the service, lost rows are as if they were never stored. Only `verify` notices them.
    else if (isStored ? outcome !== 'unchanged' && noticedBy.length === 0 : outcome !== 'created')
      this.#fault(`the service says ${outcome} for the ${isStored ? 'stored' : 'new'} plant ${id}`);
  }

  /** Does what `verify --against` does, except its wait for commits of others. */
  async #stillHolds(): Promise<boolean> {
    try {
      const earlier = parseSeal(expected!.seal);
      await using reader = await openReader(this.#order.database);
      const structure = await reader.structureFaults();
      const { faults } = await verifyRevisions(reader, earlier.until, earlier, () => {});
      return faults.length + (structure?.length ?? 0) === 0;
    } catch (error) {
      if (!isExpected(error)) this.#fault(`verification: ${(error as Error).stack}`);
      return false;
    }
  }

  /** Reads a confirmed plant. The content is compared, so a wrong checksum does not matter here. */
  async #readBack({ id, name, tag }: NewPlant, outcome: string | undefined): Promise<void> {
    const { facts, noticedBy } = this.#findings;
    let plant: NewPlant | undefined;
    try {
      await using reader = await openReader(this.#order.database);
      plant = (await reader.revisionsOf(id)).at(-1)?.plant;
    } catch (error) {
      if (!isExpected(error)) this.#fault(`reader: ${(error as Error).stack}`);
    }
    if (plant?.name === name && plant.tag === tag) return;
    // A damaged tree may hide also what was just stored there.
    const isHidden = plant === undefined || outcome !== 'unchanged';
    if (noticedBy.length > 0 && isHidden) facts.push(`${outcome} in a damaged tree, then not found`);
    else this.#fault(`plant ${id} is confirmed as ${outcome}, but the store has ${plant?.name}`);
  }
}

function isExpected(error: unknown): boolean {
  return error instanceof StoreRejected || error instanceof StoreUnavailable;
}

/** A line of an export. */
function lineOf({ id, name, tag }: NewPlant): string {
  return JSON.stringify({ id: String(id), name, tag });
}

process.on('message', async (order: Examination) => {
  process.send!(await new StoreExamination(order).run());
});
