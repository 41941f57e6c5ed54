import { type ChildProcess, fork } from 'node:child_process';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { hashToken, makeToken } from '../src/auth/token.ts';
import type { NewPlant } from '../src/contract/plant.ts';
import { plantWrite } from '../src/store/checksum.ts';
import { COMMIT_TIME_MS_MAX } from '../src/store/limits.ts';
import { openCommandStore } from '../src/store/open-store.ts';
import { LoggingClient } from '../test/harness/logging-client.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { startServe } from '../test/harness/program.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { wholeRangePlants } from '../test/harness/whole-range-plants.ts';
import type { Content, Examination, Findings } from './damaged-store.ts';
import * as damages from './damages.ts';
import { newSqliteFile, type Order, type Result, type Scenario } from './scenario.ts';

const PLANTS = 5_000;
const BATCH = 500;
/** One plant of so many is revised, and one of so many has a long name. */
const REVISED = 5;
const LONG = 50;
/** Plants in the write-ahead log. */
const LOGGED = 200;
/** The process is killed afterwards. Far longer than an examination takes. */
const EXAMINATION_MS_MAX = 120_000;
/** One damage of so many is examined with the real commands. */
const AS_PROGRAM = 30;
/** Databases of one PostgreSQL. Each is damaged in one bit before the next start. */
const DATABASES = 20;
/** Processes for SQLite. A service that ends waits half of a second. */
const EXAMINERS = 4;
const DATABASE_FLIPS = 200;

export const bitFlips: Scenario = {
  name: 'bit-flips',
  summary: 'flipped bits, torn and swapped pages: no wrong plant is shown, and no damage is unnoticed',
  needs: [],
  secondsMin: 60,
  finds: ['no-checksums'],
  async run(order) {
    const tally = new Tally(order);
    await damageSqlite(order, tally);
    if (!tally.isOver()) {
      const engines = ['--data-checksums', '--no-data-checksums'].map(each =>
        damagePostgres(order, tally, each),
      );
      await Promise.all(engines);
    }
    return tally.result();
  },
};

class Tally {
  readonly #order: Order;
  readonly #untilMs: number;
  readonly #faults: string[] = [];
  readonly #counts: Record<string, number> = {};
  readonly #messages = new Set<string>();
  damages = 0;

  constructor(order: Order) {
    this.#order = order;
    this.#untilMs = performance.now() + order.budgetMs;
  }

  /** A mutant is found once, and then the run ends. */
  isOver(): boolean {
    const { signal, mutant, roundsMax = Infinity } = this.#order;
    const isFound = mutant !== undefined && this.#faults.length > 0;
    return signal.aborted || performance.now() > this.#untilMs || isFound || this.damages >= roundsMax;
  }

  /** @returns whether a message is new, so that the real commands shall confirm it */
  add(kind: string, place: string, { faults, noticedBy, messages, facts }: Findings): boolean {
    this.damages++;
    const verdict = faults.length > 0 ? 'FAULTY' : noticedBy.length > 0 ? 'noticed' : 'harmless';
    for (const what of [verdict, ...new Set(facts)]) this.#count(`${kind}, ${what}`);
    if (noticedBy.length > 0) this.#count(`noticed by ${noticedBy.toSorted().join(', ')}`);
    this.#faults.push(...faults.slice(0, 3).map(fault => `${kind}, ${place}: ${fault}`));
    if (this.damages % 100 === 0) this.#order.tell(`${this.damages} damages, ${this.#faults.length} faults`);
    const before = this.#messages.size;
    for (const message of messages) this.#messages.add(message);
    return this.#messages.size > before;
  }

  #count(what: string): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + 1;
  }

  result(): Result {
    for (const message of [...this.#messages].sort()) this.#order.tell(message);
    const counts = Object.fromEntries(Object.entries(this.#counts).sort());
    return { faults: this.#faults, measurements: { damages: this.damages, ...counts } };
  }
}

/** Examines stores in a process that is replaced when it dies or hangs. */
class Examiner implements Disposable {
  readonly #nodeArgs: string[];
  readonly #content: Content;
  readonly #intact: string;
  #process: ChildProcess | undefined;
  #messages = Promise.resolve('');

  /** @param intact the undamaged store, which the examination changes */
  constructor({ mutant }: Order, content: Content, intact: string) {
    this.#nodeArgs =
      mutant === undefined ? [] : ['--import', new URL(`./mutants/${mutant}.ts`, import.meta.url).href];
    this.#content = content;
    this.#intact = intact;
  }

  async examine(order: Pick<Examination, 'database' | 'seed' | 'asProgram'>): Promise<Findings> {
    if (this.#process === undefined) {
      const findings = await this.#ask({ database: this.#intact, seed: 1, asProgram: false, isFirst: true });
      const { faults, noticedBy, messages } = findings;
      if (faults.length + noticedBy.length > 0) throw new Error([...faults, ...messages].join('\n'));
    }
    return await this.#ask({ ...order, isFirst: false });
  }

  async #ask(order: Omit<Examination, 'content'>): Promise<Findings> {
    const program = fileURLToPath(new URL('./damaged-store.ts', import.meta.url));
    // The threads of the service start sooner.
    const env = { ...process.env, NODE_COMPILE_CACHE: `${tmpdir()}/plant-store-fault-cache` };
    const options = { execArgv: this.#nodeArgs, env, serialization: 'advanced', silent: true } as const;
    if (this.#process === undefined) {
      this.#process = fork(program, options);
      this.#messages = readText(this.#process.stderr!);
    }
    const child = this.#process;
    const { promise, resolve } = Promise.withResolvers<Findings>();
    const died = async (code: number | null): Promise<void> => {
      this.#process = undefined;
      const fault = `the examination ended with ${code ?? 'a timeout or a signal'}: ${await this.#messages}`;
      resolve({ faults: [fault], noticedBy: [], messages: [], facts: [] });
    };
    child.once('exit', died).once('message', resolve);
    const timeout = setTimeout(() => child.kill('SIGKILL'), EXAMINATION_MS_MAX);
    child.send({ ...order, content: this.#content } satisfies Examination);
    const findings = await promise;
    clearTimeout(timeout);
    child.off('exit', died).off('message', resolve);
    return findings;
  }

  [Symbol.dispose](): void {
    this.#process?.kill('SIGKILL');
  }
}

function plantsOf(): NewPlant[] {
  return wholeRangePlants(PLANTS).map((plant, index) =>
    index % LONG === 1
      ? { ...plant, name: `${plant.name} ${'Rosa × damascena '.repeat(index >> 3)}` }
      : plant,
  );
}

/** Fills a new store. @param half is called when half of the plants are stored */
async function fill(database: string, half = () => {}): Promise<Content> {
  const token = makeToken();
  const plants = plantsOf();
  const revised = plants.flatMap(({ id }, index) =>
    index % REVISED === 0 ? [{ id, name: `revised ${index}`, tag: 'new' }] : [],
  );
  const writes = [...plants, ...revised];
  for (const [begin, end] of [
    [0, writes.length / 2],
    [writes.length / 2, writes.length],
  ] as const) {
    const store = await openCommandStore(database);
    if (begin === 0) {
      for (const label of ['sender', 'expired', 'revoked']) {
        const hash = hashToken(label === 'sender' ? token : makeToken());
        await store.createToken({
          hash,
          label,
          createdAt: Date.now(),
          expiresAt: label === 'expired' ? 1 : null,
        });
      }
      await store.revokeToken('revoked', Date.now());
      await store.recordRun({ command: 'backup', endedAt: Date.now(), result: 'complete' });
    }
    for (let at = begin; at < end; at += BATCH) {
      const batch = writes.slice(at, Math.min(at + BATCH, end));
      await store.commit(batch.map(plant => plantWrite(plant, 1)));
    }
    await store.close();
    if (begin === 0) half();
  }
  // Otherwise each `verify` waits for the commits of others.
  await wait(COMMIT_TIME_MS_MAX);
  return { token, plants: latestOf(writes) };
}

function latestOf(plants: readonly NewPlant[]): NewPlant[] {
  const latest = new Map(plants.map(plant => [plant.id, plant]));
  return [...latest.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** A damage of one of the files of an SQLite store. */
interface Kind {
  name: string;
  count: number;
  damage: damages.Damage;
  isLog?: true;
}

async function damageSqlite(order: Order, tally: Tally): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const path = newSqliteFile(opened);
  const content = await fill(`sqlite:${path}`, () => copyFileSync(path, `${path}-older`));
  using database = new DatabaseSync(path);
  // Free pages, which the store itself hardly ever has.
  database.exec(
    'CREATE TABLE free AS SELECT zeroblob(100000); DROP TABLE free; PRAGMA wal_checkpoint(TRUNCATE)',
  );
  const roots = database
    .prepare(`SELECT rootpage FROM sqlite_schema WHERE tbl_name IN ('token', 'last_run')`)
    .all();
  database.close();
  const logged = `${path}-logged`;
  const loggedContent = await log(path, logged, content);
  const small = damages.inCellsOf(roots.map(({ rootpage }) => Number(rootpage)).filter(root => root > 0));
  const kinds: Kind[] = [
    { name: 'flip in the database file', count: 1_000, damage: damages.anywhere },
    { name: 'flip in the file header', count: 60, damage: damages.inFileHeader },
    { name: 'flip in the schema', count: 40, damage: damages.inSchema },
    { name: 'flip in a page header', count: 100, damage: damages.inPageHeader },
    { name: 'flip in tokens and last runs', count: 40, damage: small },
    { name: 'flip in the log', count: 100, damage: damages.anywhere, isLog: true },
    { name: 'flip in a header of the log', count: 40, damage: damages.inFrameHeader, isLog: true },
    { name: 'torn page', count: 100, damage: damages.tornPage(readFileSync(`${path}-older`)) },
    { name: 'swapped pages', count: 100, damage: damages.swappedPages },
  ];
  // A short run has some of each kind.
  const jobs = kinds
    .flatMap(kind =>
      Array.from({ length: kind.count }, (_, index) => ({ kind, at: (index + 0.5) / kind.count })),
    )
    .sort((a, b) => a.at - b.at);
  let next = 0;
  const work = async (worker: number): Promise<void> => {
    const damaged = `${path}-damaged-${worker}`;
    const database = `sqlite:${damaged}`;
    const copy = (source: string, isLog = false): void => {
      copyFileSync(source, damaged);
      for (const end of ['-wal', '-shm']) rmSync(`${damaged}${end}`, { force: true });
      if (isLog) copyFileSync(`${source}-wal`, `${damaged}-wal`);
    };
    copyFileSync(path, `${damaged}-intact`);
    copyFileSync(logged, `${damaged}-intact-log`);
    copyFileSync(`${logged}-wal`, `${damaged}-intact-log-wal`);
    using ofFile = new Examiner(order, content, `${database}-intact`);
    using ofLog = new Examiner(order, loggedContent, `${database}-intact-log`);
    while (next < jobs.length && !tally.isOver()) {
      const number = next++;
      const { name, damage, isLog } = jobs[number]!.kind;
      const seed = order.seed * 10_000 + number;
      const examine = async (asProgram: boolean): Promise<boolean> => {
        copy(isLog ? logged : path, isLog);
        const file = isLog ? `${damaged}-wal` : damaged;
        const bytes = readFileSync(file);
        const place = damage(bytes, seededRandom(seed));
        writeFileSync(file, bytes);
        const findings = await (isLog ? ofLog : ofFile).examine({ database, seed, asProgram });
        return tally.add(name, place, findings);
      };
      const isNew = await examine(number % AS_PROGRAM === 0);
      if (isNew && number % AS_PROGRAM !== 0) await examine(true);
    }
  };
  await Promise.all(Array.from({ length: EXAMINERS }, (_, worker) => work(worker)));
}

/** Kills a service on a copy of the store, so that plants are only in the write-ahead log. */
async function log(path: string, logged: string, { token, plants }: Content): Promise<Content> {
  copyFileSync(path, logged);
  const service = await startServe(`sqlite:${logged}`);
  const client = new LoggingClient(service.url, token, []);
  const sent = plants.filter((_, index) => index % Math.floor(PLANTS / LOGGED) === 0).map(addedOrRevised);
  for (const plant of sent) await client.send(plant);
  await client.close();
  await service.stop('SIGKILL');
  await wait(COMMIT_TIME_MS_MAX);
  return { token, plants: latestOf([...plants, ...sent]) };
}

function addedOrRevised({ id }: NewPlant, index: number): NewPlant {
  return { id: index % 2 === 0 ? id : id ^ 0x3333333333n, name: `logged ${index}` };
}

/** Flips one bit each in the table or the index of many databases, and starts PostgreSQL again. */
async function damagePostgres(order: Order, tally: Tally, checksums: string): Promise<void> {
  await using server = await PostgresServer.start({ fsync: 'off' }, [checksums]);
  const original = await server.createDatabase();
  const content = await fill(original);
  const template = new URL(original).pathname.slice(1);
  const copy = async (name: string): Promise<void> => {
    await server.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
  };
  await copy('intact');
  using examiner = new Examiner(order, content, server.url('intact'));
  for (let first = 0; first < DATABASE_FLIPS && !tally.isOver(); first += DATABASES) {
    const flips: { name: string; path: string; kind: string; seed: number; place?: string }[] = [];
    for (let number = first; number < first + DATABASES; number++) {
      const name = `damaged_${number}`;
      await copy(name);
      const relation = ['plant_revision', 'plant_revision_pkey'][number % 2]!;
      const amcheck = number % 4 < 2 ? ', amcheck' : '';
      if (amcheck !== '') await server.query('CREATE EXTENSION amcheck', name);
      const [row] = await server.query(`SELECT pg_relation_filepath('${relation}') AS path`, name);
      const kind = `PostgreSQL ${checksums}${amcheck}, flip in ${relation}`;
      flips.push({
        name,
        path: `${server.folder}/data/${row!.path}`,
        kind,
        seed: order.seed * 10_000 + number,
      });
    }
    await server.stop();
    for (const flip of flips) {
      const bytes = readFileSync(flip.path);
      flip.place = `${flip.path} ${damages.anywhere(bytes, seededRandom(flip.seed))}`;
      writeFileSync(flip.path, bytes);
    }
    await server.startAgain();
    for (const [index, { name, kind, seed, place = '' }] of flips.entries()) {
      if (tally.isOver()) break;
      const asProgram = index === 0;
      tally.add(kind, place, await examiner.examine({ database: server.url(name), seed, asProgram }));
    }
    for (const { name } of flips) await server.query(`DROP DATABASE ${name} WITH (FORCE)`);
  }
}
