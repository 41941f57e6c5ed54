import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import type { NewPlant } from '../src/core/contract/plant.ts';
import { INSERT_BEGINS_WITHIN_MS } from '../src/engines/postgres/access/unfinished-inserts.ts';
import { openCommandStore } from '../test/harness/open-store.ts';
import { plantWrite } from '../test/harness/plant-write.ts';
import { PATIENCE, PostgresServer } from '../test/harness/postgres-server.ts';
import type { StartOptions } from '../test/harness/program.ts';
import { addToken } from '../test/harness/running-service.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { wholeRangePlants } from '../test/harness/whole-range-plants.ts';
import { type Content, type Expected, StoreExamination } from './damaged-store.ts';
import * as damages from './damages.ts';
import { newSqliteFile, type Order, type Result, type Scenario } from './scenario.ts';

const PLANTS = 5_000;
const BATCH = 500;
/** One plant of so many is revised, and one of so many has a long name. */
const REVISED = 5;
const LONG = 50;
/** Plants in the write-ahead log, and in each of its commits. */
const LOGGED = 200;
const LOGGED_BATCH = 10;
/** Stores that are examined at a time. Each `verify` after a create waits for 3 s. */
const WORKERS = 6;
/** Flips of each PostgreSQL, and its databases: one bit of each flips before the next start. */
const DATABASE_FLIPS = 200;
const DATABASES = 20;

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
  damages = 0;
  #started = 0;

  constructor(order: Order) {
    this.#order = order;
    this.#untilMs = performance.now() + order.budgetMs;
  }

  /** A mutant is found once, and then the run ends. */
  isOver(): boolean {
    const { signal, mutant, roundsMax = Infinity } = this.#order;
    const isFound = mutant !== undefined && this.#faults.length > 0;
    return signal.aborted || performance.now() > this.#untilMs || isFound || this.#started >= roundsMax;
  }

  /** Counts a damage that is about to be examined. @returns false if the run is over */
  start(): boolean {
    if (this.isOver()) return false;
    this.#started++;
    return true;
  }

  add(kind: string, place: string, { faults, noticed, facts }: StoreExamination): void {
    this.damages++;
    const verdict = faults.length > 0 ? 'FAULTY' : noticed.size > 0 ? 'noticed' : 'harmless';
    for (const what of [verdict, ...facts]) this.#count(`${kind}, ${what}`);
    if (noticed.size > 0) this.#count(`noticed by ${[...noticed.keys()].sort().join(', ')}`);
    this.#faults.push(...faults.slice(0, 3).map(fault => `${kind}, ${place}: ${fault}`));
    if (this.damages % 100 === 0) this.#order.tell(`${this.damages} damages, ${this.#faults.length} faults`);
  }

  #count(what: string): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + 1;
  }

  result(): Result {
    const counts = Object.fromEntries(Object.entries(this.#counts).sort());
    return { faults: this.#faults, measurements: { damages: this.damages, ...counts } };
  }
}

/** How to start the program, with the mutant of this run. */
function optionsOf({ mutant }: Order): StartOptions {
  const module = new URL(`./mutants/${mutant}.ts`, import.meta.url).href;
  return {
    nodeArgs: mutant === undefined ? [] : ['--import', module],
    // Each damage is examined by several processes.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'plant-store-fault-cache') },
  };
}

/** Works on several jobs at a time, until the run is over. */
async function workOn<T>(
  jobs: readonly T[],
  tally: Tally,
  work: (job: T, worker: number) => Promise<void>,
): Promise<void> {
  const rest = jobs.values();
  const workAs = async (worker: number): Promise<void> => {
    for (const job of rest) {
      if (!tally.start()) return;
      await work(job, worker);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, (_, worker) => workAs(worker)));
}

/** Fills a new store. @param half is called when half of the plants are stored */
async function fill(database: string, half = () => {}): Promise<Content> {
  const token = await addToken(database, 'sender');
  await addToken(database, 'expired', 1);
  await addToken(database, 'revoked');
  const plants = wholeRangePlants(PLANTS).map((plant, index) => {
    const long = `${plant.name} ${'Rosa × damascena '.repeat(index >> 3)}`;
    return index % LONG === 1 ? { ...plant, name: long } : plant;
  });
  const revised = plants
    .filter((_, index) => index % REVISED === 0)
    .map(({ id }, index) => ({ id, name: `revised ${index}`, tag: 'new' }));
  const writes = [...plants, ...revised];
  await store(database, writes.slice(0, writes.length / 2));
  half();
  await store(database, writes.slice(writes.length / 2));
  // Otherwise each `verify` waits for the commits of others.
  await wait(INSERT_BEGINS_WITHIN_MS);
  return { token, plants: latestOf(writes) };
}

async function store(database: string, plants: readonly NewPlant[], batch = BATCH): Promise<void> {
  const engine = await openCommandStore(database);
  for (let begin = 0; begin < plants.length; begin += batch) {
    await engine.commit(plants.slice(begin, begin + batch).map(plant => plantWrite(plant, 1)));
  }
  await engine.tokenTable.revokeToken('revoked', Date.now());
  await engine.operatorTables.recordRun({
    command: 'backup',
    endedAt: Date.now(),
    hasSucceeded: true,
    result: 'complete',
  });
  await engine.close();
}

function latestOf(plants: readonly NewPlant[]): NewPlant[] {
  const latest = new Map(plants.map(plant => [plant.id, plant]));
  return [...latest.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

async function damageSqlite(order: Order, tally: Tally): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const path = newSqliteFile(opened);
  const [older, logged] = [`${path}-older`, `${path}-logged`];
  const options = optionsOf(order);
  const expectedOf = async (original: string, content: Content): Promise<Expected> => {
    copyStore(original, `${original}-intact`);
    return await new StoreExamination(`sqlite:${original}-intact`, options).expect(content);
  };
  const content = await fill(`sqlite:${path}`, () => copyFileSync(path, older));
  const file = { original: path, damagedFile: '', expected: await expectedOf(path, content) };
  const loggedContent = await leaveLog(path, logged, content);
  const log = { original: logged, damagedFile: '-wal', expected: await expectedOf(logged, loggedContent) };
  const small = damages.inCellsOf(rootPages(path, ['token', 'last_run']));
  const torn = damages.tornPage(readFileSync(older));
  const kinds = [
    { ...file, name: 'flip in the database file', count: 1_000, damage: damages.anywhere },
    { ...file, name: 'flip in the file header', count: 60, damage: damages.inFileHeader },
    { ...file, name: 'flip in the schema', count: 40, damage: damages.inSchema },
    { ...file, name: 'flip in a page header', count: 100, damage: damages.inPageHeader },
    { ...file, name: 'flip in tokens and last runs', count: 40, damage: small },
    { ...log, name: 'flip in the log', count: 100, damage: damages.anywhere },
    { ...log, name: 'flip in a header of the log', count: 40, damage: damages.inFrameHeader },
    { ...file, name: 'torn page', count: 100, damage: torn },
    { ...file, name: 'swapped pages', count: 100, damage: damages.swappedPages },
  ];
  // A short run has some of each kind.
  const jobs = kinds
    .flatMap(kind =>
      Array.from({ length: kind.count }, (_, index) => ({ ...kind, at: (index + 0.5) / kind.count })),
    )
    .sort((a, b) => a.at - b.at)
    .map((kind, number) => ({ ...kind, seed: order.seed * 10_000 + number }));
  await workOn(jobs, tally, async ({ original, damagedFile, expected, name, damage, seed }, worker) => {
    const damaged = `${path}-damaged-${worker}`;
    copyStore(original, damaged);
    const place = damageFile(`${damaged}${damagedFile}`, damage, seed);
    const examination = new StoreExamination(`sqlite:${damaged}`, options);
    await examination.run(expected, seed);
    tally.add(name, place, examination);
  });
}

function copyStore(from: string, to: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(`${to}${end}`, { force: true });
  copyFileSync(from, to);
  if (existsSync(`${from}-wal`)) copyFileSync(`${from}-wal`, `${to}-wal`);
}

function damageFile(path: string, damage: damages.Damage, seed: number): string {
  const bytes = readFileSync(path);
  const place = damage(bytes, seededRandom(seed));
  writeFileSync(path, bytes);
  return place;
}

/** The numbers of the first pages of tables and their indexes. */
function rootPages(path: string, tables: readonly string[]): number[] {
  using database = new DatabaseSync(path, { readOnly: true });
  const select = database.prepare('SELECT rootpage FROM sqlite_schema WHERE rootpage > 0 AND tbl_name = ?');
  return tables.flatMap(table => select.all(table)).map(({ rootpage }) => Number(rootpage));
}

/** Leaves plants only in the write-ahead log of a copy of the store. */
async function leaveLog(path: string, logged: string, { token, plants }: Content): Promise<Content> {
  const open = `${path}-open`;
  copyFileSync(path, open);
  // While a connection reads the older state, no checkpoint can copy the log.
  using reader = new DatabaseSync(open, { readOnly: true });
  reader.exec('BEGIN; SELECT count(*) FROM token');
  const sent = plants.filter((_, index) => index % (PLANTS / LOGGED) === 0).map(addedOrRevised);
  await store(`sqlite:${open}`, sent, LOGGED_BATCH);
  copyStore(open, logged);
  await wait(INSERT_BEGINS_WITHIN_MS);
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
  const copy = async (name: string): Promise<void> => {
    const template = new URL(original).pathname.slice(1);
    await server.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
  };
  await copy('intact');
  const options = optionsOf(order);
  const expected = await new StoreExamination(server.url('intact', PATIENCE), options).expect(content);
  for (let first = 0; first < DATABASE_FLIPS && !tally.isOver(); first += DATABASES) {
    const flips: { name: string; kind: string; path: string; seed: number }[] = [];
    for (let number = first; number < first + DATABASES; number++) {
      const name = `damaged_${number}`;
      await copy(name);
      const relation = number % 2 === 0 ? 'plant_revision' : 'plant_revision_pkey';
      const hasCheck = number % 4 < 2;
      if (hasCheck) await server.query('CREATE EXTENSION amcheck', name);
      const [row] = await server.query(`SELECT pg_relation_filepath('${relation}') AS path`, name);
      const kind = `PostgreSQL ${checksums}${hasCheck ? ', amcheck' : ''}, flip in ${relation}`;
      const path = `${server.folder}/data/${row!.path}`;
      flips.push({ name, kind, path, seed: order.seed * 10_000 + number });
    }
    await server.stop();
    const jobs = flips.map(flip => ({ ...flip, place: damageFile(flip.path, damages.anywhere, flip.seed) }));
    await server.startAgain();
    await workOn(jobs, tally, async ({ name, kind, path, seed, place }) => {
      const examination = new StoreExamination(server.url(name, PATIENCE), options);
      await examination.run(expected, seed);
      tally.add(kind, `${path} ${place}`, examination);
    });
    for (const { name } of flips) await server.query(`DROP DATABASE ${name} WITH (FORCE)`);
  }
}
