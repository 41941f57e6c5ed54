import { closeSync, copyFileSync, fsyncSync, mkdirSync, openSync, readdirSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { runProgram } from '../test/harness/program.ts';
import { cpuUsOf, residentBytesOf, type ServerProcess, startServer } from '../test/harness/server-process.ts';
import type { FilledPostgres } from './filled-postgres.ts';

const PLANT_STORE = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url));
/** What the peers compare the credential with; as long as a token of the plant store. */
const PEER_TOKEN = 'peer_00000000000000000000000000000000000000';
/** Comes with the packages of the peers. */
export const BUN = fileURLToPath(new URL('./peers/node_modules/bun/bin/bun.exe', import.meta.url));

/** Of the subjects that figures are compared between. */
export const NAMES = {
  httpEcho: 'node:http echo',
  fastifyEcho: 'Fastify echo',
  sqlite: 'plant store, SQLite',
  sqliteRandom: 'plant store, SQLite, random ids',
  storedAscending: 'plant store, SQLite, 10 million stored',
  storedRandom: 'plant store, SQLite, 10 million stored, random ids',
  postgres: 'plant store, PostgreSQL',
  postgresStoredAscending: 'plant store, PostgreSQL, 10 million stored',
  postgresStoredRandom: 'plant store, PostgreSQL, 10 million stored, random ids',
} as const;

/** A server that takes `POST /plants`. Times in µs or ms and sizes in bytes, as the names say. */
export interface RunningSubject {
  url: string;
  token: string;
  /** From its start to its first answer 200. */
  startMs: number;
  /** Of the process so far, user and system, all threads. */
  cpuUs(): number;
  residentBytes(): number;
  residentPeakBytes(): number;
  /** Of all files of its store; undefined where it has none. Complete once it is stopped. */
  storeBytes(): number | undefined;
  /** What a database server beside it has used so far. */
  databaseUse?(): Promise<DatabaseUse>;
  stop(): Promise<void>;
}

export interface DatabaseUse {
  cpuUs: number;
  logBytes: number;
}

export interface Subject {
  name: string;
  kind: 'floor' | 'durable peer' | 'weaker peer' | 'plant store';
  /** What a reader must know to judge its figures. */
  note?: string;
  /**
   * Starts it in a process of its own and waits for its first answer.
   *
   * @param folder an empty one, for its store
   * @throws with what it said, when it cannot be started
   */
  start(folder: string): Promise<RunningSubject>;
}

/** A bare `node:http` server and a bare Fastify server, which answer with the plant and store nothing. */
export const FLOORS: readonly Subject[] = [
  nodeServer(NAMES.httpEcho, 'floor', './floors/http-echo.ts'),
  nodeServer(NAMES.fastifyEcho, 'floor', './floors/fastify-echo.ts'),
];

/** What people write today; each keeps a plant before it answers, and compares the credential with a constant. */
export const PEERS: readonly Subject[] = [
  nodeServer('Express + better-sqlite3', 'durable peer', './peers/express-better-sqlite3.js', ['FULL']),
  nodeServer('Fastify + better-sqlite3', 'durable peer', './peers/fastify-better-sqlite3.js', ['FULL']),
  bunServer('Elysia on Bun + bun:sqlite', 'durable peer', './peers/elysia-bun-sqlite.js', ['FULL']),
  {
    ...nodeServer('NestJS + TypeORM', 'durable peer', './peers/node_modules/.build/nestjs-typeorm.js', [
      'FULL',
    ]),
    note: 'on better-sqlite3; repository.insert for each plant',
  },
  {
    ...nodeServer('json-server', 'weaker peer', './peers/json-server.js'),
    note:
      'not durable: the whole file is written anew for each record without a flush, so it slows down with each record; ' +
      'no credential is asked for; ids are rounded beyond 2^53; it answers 201',
  },
  {
    ...bunServer('Elysia on Bun, synchronous NORMAL', 'weaker peer', './peers/elysia-bun-sqlite.js', [
      'NORMAL',
    ]),
    note: 'answers before the disk has the plant',
  },
  {
    ...nodeServer('Fastify, synchronous NORMAL', 'weaker peer', './peers/fastify-better-sqlite3.js', [
      'NORMAL',
    ]),
    note: 'answers before the disk has the plant',
  },
];

/**
 * The plant store on SQLite.
 *
 * @param database an existing file to use as it stands; without it each start makes a new store
 */
export function plantStoreOnSqlite(database?: string): Subject {
  return {
    name: NAMES.sqlite,
    kind: 'plant store',
    start: async folder => {
      const path = database ?? join(folder, 'plants.db');
      const token = await createToken(`sqlite:${path}`);
      const server = await startPlantStore(`sqlite:${path}`, token);
      return { ...running(server, token), storeBytes: () => storeBytes(path) };
    },
  };
}

/**
 * The plant store on SQLite with plants in it already; each start takes a fresh copy.
 *
 * @param original makes the file when first asked, and gives its path
 */
export function plantStoreOnCopy(name: string, original: () => string): Subject {
  return {
    name,
    kind: 'plant store',
    start: async folder => {
      const path = join(folder, 'plants.db');
      copyFileSync(original(), path);
      // Not while it is measured.
      flush(path);
      return await plantStoreOnSqlite(path).start(folder);
    },
  };
}

/** The plant store on a PostgreSQL server of its own, from an npm package; each start makes a new database. */
export function plantStoreOnPostgres(): Subject {
  return {
    name: NAMES.postgres,
    kind: 'plant store',
    note: 'memory and CPU are those of the service; what PostgreSQL itself takes stands below the table',
    start: async () => {
      const postgres = await PostgresServer.start();
      const end = () => endPostgres(postgres);
      try {
        return await startOnPostgres(postgres, await postgres.createDatabase(), end);
      } catch (error) {
        await end();
        throw error;
      }
    },
  };
}

/**
 * The plant store on a PostgreSQL server that holds plants already; each start takes a fresh copy of its database.
 *
 * @param filled the server, which is started for each trial and stopped behind it, and its database
 */
export function plantStoreOnFilledPostgres(name: string, filled: FilledPostgres): Subject {
  return {
    name,
    kind: 'plant store',
    start: async () => {
      const { server, url } = await filled.startWithCopy();
      try {
        return await startOnPostgres(server, url, () => filled.dropCopyAndStop(url));
      } catch (error) {
        await filled.dropCopyAndStop(url);
        throw error;
      }
    },
  };
}

/** @param end called once the service has stopped */
async function startOnPostgres(
  postgres: PostgresServer,
  url: string,
  end: () => Promise<void>,
): Promise<RunningSubject> {
  const token = await createToken(url);
  const server = await startPlantStore(url, token);
  let tableBytes: number | undefined;
  return {
    ...running(server, token),
    storeBytes: () => tableBytes,
    databaseUse: () => databaseUse(postgres),
    stop: async () => {
      await server.stop();
      try {
        tableBytes = await plantTableBytes(postgres, url);
      } finally {
        await end();
      }
    },
  };
}

function nodeServer(name: string, kind: Subject['kind'], file: string, args: string[] = []): Subject {
  return { name, kind, start: folder => startPeer(process.execPath, file, folder, args) };
}

function bunServer(name: string, kind: Subject['kind'], file: string, args: string[]): Subject {
  return { name, kind, start: folder => startPeer(BUN, file, folder, args) };
}

async function startPeer(
  program: string,
  file: string,
  folder: string,
  args: string[],
): Promise<RunningSubject> {
  const script = fileURLToPath(new URL(file, import.meta.url));
  const store = join(folder, 'store');
  mkdirSync(store);
  const server = await startServer(
    port => [program, script, String(port), PEER_TOKEN, join(store, 'plants.db'), ...args],
    PEER_TOKEN,
  );
  return {
    ...running(server, PEER_TOKEN),
    storeBytes: () => (readdirSync(store).length > 0 ? storeBytes(join(store, 'plants.db')) : undefined),
  };
}

async function startPlantStore(database: string, token: string): Promise<ServerProcess> {
  return await startServer(
    port =>
      [
        ...[process.execPath, PLANT_STORE, 'serve', '--database', database],
        ...['--listen', `127.0.0.1:${port}`, '--ops', '127.0.0.1:0'],
      ] as [string, ...string[]],
    token,
  );
}

function running(server: ServerProcess, token: string): RunningSubject {
  const { url, startMs, pid } = server;
  return {
    url,
    token,
    startMs,
    cpuUs: () => cpuUsOf(pid),
    residentBytes: () => residentBytesOf(pid, 'VmRSS'),
    residentPeakBytes: () => residentBytesOf(pid, 'VmHWM'),
    storeBytes: () => undefined,
    stop: server.stop,
  };
}

/** Labels of a store are never used twice. */
export async function createToken(database: string): Promise<string> {
  const args = ['token', 'create', `bench ${Date.now()}`, '--database', database];
  const { exitCode, stdout, stderr } = await runProgram(args);
  if (exitCode !== 0) throw new Error(`no token could be made: ${stderr}`);
  return stdout.trim();
}

function flush(path: string): void {
  const file = openSync(path, 'r+');
  fsyncSync(file);
  closeSync(file);
}

/** Of an SQLite database and what lies beside it. */
function storeBytes(path: string): number {
  const files = [path, `${path}-wal`, `${path}-shm`];
  return files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
}

async function databaseUse(postgres: PostgresServer): Promise<DatabaseUse> {
  const [row] = await postgres.query(`SELECT pg_current_wal_lsn() - '0/0' AS bytes`);
  const cpuUs = (await postgres.processIds()).map(cpuUsOf).reduce((sum, each) => sum + each);
  return { cpuUs, logBytes: Number(row!.bytes) };
}

/** With its indexes. */
async function plantTableBytes(postgres: PostgresServer, url: string): Promise<number> {
  const sql = `SELECT pg_total_relation_size('plant_revision') AS bytes`;
  const [row] = await postgres.query(sql, new URL(url).pathname.slice(1));
  return Number(row!.bytes);
}

export async function endPostgres(postgres: PostgresServer): Promise<void> {
  const isAlive = await postgres.query('SELECT 1').then(
    () => true,
    () => false,
  );
  if (isAlive) await postgres[Symbol.asyncDispose]();
  // Ctrl-C in a terminal reaches PostgreSQL too, which then ends by itself.
  else await rm(postgres.folder, { recursive: true, force: true, maxRetries: 20 });
}
