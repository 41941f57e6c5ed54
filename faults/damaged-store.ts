import { tmpdir } from 'node:os';
import { StoreRejected, StoreUnavailable } from '../src/core/commit/store-errors.ts';
import type { NewPlant } from '../src/core/contract/plant.ts';
import { runCommandLines } from '../test/harness/command-lines.ts';
import { LoggingClient } from '../test/harness/logging-client.ts';
import { openSearch } from '../test/harness/open-store.ts';
import { type Finished, type StartOptions, startServe } from '../test/harness/program.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';

/** What was written to a store. */
export interface Content {
  token: string;
  /** Each plant as it was stored last, in the order of ids. */
  plants: NewPlant[];
}

/** What the commands print of the undamaged store. */
export interface Expected extends Content {
  seal: string;
  /** The lines of `export`, and of `export --revisions`. */
  latest: Set<string>;
  revisions: Set<string>;
  /** The same revisions as plants only, and without the label of their token. */
  contents: Set<string>;
  unlabeled: Set<string>;
  tokens: string;
}

interface PrintedPlant {
  id: string;
  name: string;
  tag?: string;
  /** Only of revisions, like their number and time. */
  recorded_by?: string;
}

/** Sent plants: with damaged or missing revisions, with others, and new ones. */
const SENT_MAX = { affected: 8, others: 6, added: 3 };
const SHOWN_MAX = 3;
/** A service is killed afterwards. Far longer than an examination takes. */
const SERVICE_MAX_MS = 120_000;
/** The message of the comparison with an earlier seal. */
const AGAINST = /^plant-store: the store .*: the seal has \S+ revisions, and the store has /;

const EXPORT = ['export', '--format', 'jsonl'];
const PRINTED = [EXPORT, [...EXPORT, '--revisions'], ['token list', '--json']];

/** Examines a store with the commands and a service, each in a process that may die or hang. */
export class StoreExamination {
  /** Broken promises. */
  readonly faults: string[] = [];
  /** The parts that noticed damage, with their message. Without one, it must be harmless. */
  readonly noticed = new Map<string, string>();
  /** Facts to count. */
  readonly facts = new Set<string>();
  readonly #database: string;
  readonly #options: StartOptions;

  constructor(database: string, options: StartOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** Reads an undamaged store. */
  async expect(content: Content): Promise<Expected> {
    const [verified, latest, revisions, tokens] = await this.#run(['verify'], ...PRINTED);
    const records = linesOf(revisions).map(line => JSON.parse(line));
    if (latest!.stdout !== content.plants.map(plant => `${lineOf(plant)}\n`).join(''))
      this.faults.push('the store has other plants');
    if (this.faults.length + this.noticed.size > 0)
      throw new Error([...this.faults, ...this.noticed.values()].join('\n'));
    return {
      ...content,
      seal: verified!.stdout.trim(),
      latest: new Set(linesOf(latest)),
      revisions: new Set(linesOf(revisions)),
      contents: new Set(records.map(lineOf)),
      unlabeled: new Set(records.map(withoutLabel)),
      tokens: tokens!.stdout,
    };
  }

  /** Examines a damaged store. */
  async run(expected: Expected, seed: number): Promise<void> {
    try {
      await this.#examine(expected, seed);
    } catch (error) {
      // The commands died or hung.
      this.faults.push(String(error));
    }
  }

  /** Reads the store, serves it, and reads it again. */
  async #examine(expected: Expected, seed: number): Promise<void> {
    const against = ['verify', '--against', expected.seal];
    const [, exported, exportedRevisions, tokens] = await this.#run(against, ...PRINTED);
    const [latest, revisions] = [linesOf(exported), linesOf(exportedRevisions)];
    this.#compare('export: outdated revision', latest, expected.latest, expected.contents);
    this.#compare('export: wrong label', revisions, expected.revisions, expected.unlabeled);
    const printed = new Set(latest);
    const affected = expected.plants.filter(plant => !printed.has(lineOf(plant)));
    await this.#show(affected.slice(0, SHOWN_MAX), expected);

    const isSound = this.noticed.size === 0;
    const isChanged =
      affected.length > 0 ||
      latest.length !== expected.latest.size ||
      revisions.length !== expected.revisions.size;
    if (isChanged) {
      this.facts.add('content changed');
      if (!this.noticed.has('export')) this.facts.add('incomplete export without an error');
      if (!this.noticed.has('verify') && !this.noticed.has('verify --against'))
        this.faults.push(`verify does not notice ${affected.length} missing or different plants`);
    }
    if (tokens!.stdout !== expected.tokens && isSound)
      this.faults.push('a token changed, and nothing says so');

    const confirmed = await this.#serve(expected, affected, seed);
    const [verified] = await this.#run(against);
    const holds = verified!.exitCode === 0;
    if (holds && isChanged) this.faults.push('verify --against holds after the service wrote');
    if (!holds && isSound)
      this.faults.push(`the service wrote over stored plants: ${verified!.stderr.slice(0, 500)}`);
    for (const [plant, outcome] of confirmed) {
      const stored = await this.#stored(plant.id);
      this.#compareConfirmed(plant, outcome, stored && lineOf(stored));
    }
  }

  /** Runs commands, one after the other in one process. Notes faults, and messages of damage. */
  async #run(...commands: string[][]): Promise<Finished[]> {
    const lines = commands.map(([name, ...args]) => {
      return { args: [...name!.split(' '), '--database', this.#database, ...args] };
    });
    const finished = await runCommandLines(lines, tmpdir(), this.#options);
    for (const [index, { exitCode, stderr }] of finished.entries()) {
      const name = commands[index]![0]!;
      if (exitCode! > 1 || /internal error|^ +at /m.test(stderr))
        this.faults.push(`${name} ended with ${exitCode}: ${stderr.slice(0, 500)}`);
      if (exitCode === 0 || stderr.includes('there is no plant with')) continue;
      const errors = stderr.split('\n').filter(line => line.startsWith('plant-store: '));
      const isOnlyAgainst = name === 'verify' && errors.every(line => AGAINST.test(line));
      this.noticed.set(isOnlyAgainst ? 'verify --against' : name, stderr);
    }
    return finished.map(each => ({ ...each, stdout: withIdsAsText(each.stdout) }));
  }

  /**
   * Finds lines that the undamaged store does not have.
   *
   * @param fact the name of a permitted difference
   * @param permitted the lines with this difference, as JSON without the label of a token
   */
  #compare(fact: string, lines: string[], expected: Set<string>, permitted: Set<string>): void {
    for (const line of lines) {
      if (expected.has(line)) continue;
      if (permitted.has(withoutLabel(JSON.parse(line)))) this.facts.add(fact);
      else this.faults.push(`wrong line: ${line.slice(0, 200)}`);
    }
  }

  async #show(plants: NewPlant[], { revisions, unlabeled }: Expected): Promise<void> {
    if (plants.length === 0) return;
    const options = ['--json', '--'];
    for (const { stdout } of await this.#run(...plants.map(({ id }) => ['show', ...options, String(id)]))) {
      if (stdout === '') continue;
      const lines = JSON.parse(stdout).revisions.map((each: PrintedPlant) => JSON.stringify(each));
      this.#compare('show: wrong label', lines, revisions, unlabeled);
    }
  }

  /** Sends plants to a service. @returns the outcome of each confirmed plant */
  async #serve({ plants, token }: Expected, affected: NewPlant[], seed: number) {
    const random = seededRandom(seed);
    const others = new Set<NewPlant>();
    while (others.size < SENT_MAX.others) others.add(plants[random(plants.length)]!);
    const stored = new Set([...affected.slice(0, SENT_MAX.affected), ...others]);
    const added = new Set(
      [...others].slice(0, SENT_MAX.added).map(({ id }) => ({ id: id ^ 0x55aa0001n, name: 'added' })),
    );
    const confirmed = new Map<NewPlant, string | undefined>();
    try {
      const options = { ...this.#options, timeout: SERVICE_MAX_MS };
      await using service = await startServe(this.#database, [], options);
      const send = async (plant: NewPlant): Promise<void> => {
        const client = new LoggingClient(service.url, token, []);
        const { status = 0, outcome } = (await client.send(plant)).response ?? {};
        await client.close();
        if (status === 200) confirmed.set(plant, outcome);
        if (status === 401 || status === 503) this.noticed.set('service', `status ${status}`);
        else if (status !== 200) this.faults.push(`status ${status} for plant ${plant.id}`);
        // To the service, a lost plant is a new one. Only `verify` notices this.
        else if (
          added.has(plant) ? outcome !== 'created' : outcome !== 'unchanged' && this.noticed.size === 0
        )
          this.faults.push(`the service says ${outcome} for plant ${plant.id}`);
      };
      await Promise.all([...stored, ...added].map(send));
    } catch (error) {
      const { message } = error as Error;
      if (/ ended with 1: .*plant-store: (?!unexp)/s.test(message)) this.noticed.set('service', message);
      else this.faults.push(`service: ${message}`);
    }
    return confirmed;
  }

  /** Reads a plant by its id, which needs no other part of the store than its create. */
  async #stored(id: bigint): Promise<NewPlant | undefined> {
    try {
      await using search = await openSearch(this.#database);
      return (await search.revisionsOf(id, 1)).at(-1)?.plant;
    } catch (error) {
      if (error instanceof StoreRejected || error instanceof StoreUnavailable) return undefined;
      throw error;
    }
  }

  /** @param line the plant as it is stored afterwards */
  #compareConfirmed(plant: NewPlant, outcome: string | undefined, line: string | undefined): void {
    if (line === lineOf(plant)) return;
    // A damaged tree may also hide what was just stored there.
    const isHidden = line === undefined || outcome !== 'unchanged';
    if (this.noticed.size > 0 && isHidden) this.facts.add(`${outcome} in a damaged tree, then not found`);
    else this.faults.push(`plant ${plant.id} is confirmed as ${outcome}, but the store has ${line}`);
  }
}

function linesOf(finished: Finished | undefined): string[] {
  return finished!.stdout.split('\n').slice(0, -1);
}

/** JSON of plants with ids that \`JSON.parse\` does not round. */
function withIdsAsText(json: string): string {
  return json.replace(/"id":(-?[0-9]+)/g, '"id":"$1"');
}

/** A line of `export`. */
function lineOf({ id, name, tag }: NewPlant | PrintedPlant): string {
  return JSON.stringify({ id: String(id), name, tag });
}

/** A line of `export --revisions` without the label of the token, which may be damaged. */
function withoutLabel({ recorded_by: _, ...rest }: PrintedPlant): string {
  return JSON.stringify(rest);
}
