import { closeSync, copyFileSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { PROGRAM, runProgram } from '../test/harness/program.ts';
import { cpuUsOf, startServer } from './server-process.ts';

/** A program with its first arguments. */
export type Command = readonly [program: string, ...args: string[]];

/** The plant store of this checkout. */
export const THIS_CHECKOUT: Command = [process.execPath, PROGRAM];
/** What the peers compare the credential with; as long as a token of the plant store. */
const PEER_TOKEN = 'peer_00000000000000000000000000000000000000';
/** Comes with the packages of the benchmark. */
const BUN = fileURLToPath(new URL('./node_modules/bun/bin/bun.exe', import.meta.url));

/** A server that takes `POST /plants`. */
export interface RunningSubject {
  url: string;
  token: string;
  /** From its start to its first answer 200. */
  startMs: number;
  pid: number;
  /** What a database server beside it has used so far. */
  databaseUse?(): Promise<DatabaseUse>;
  /** @returns the size of its store with all that lies beside it; 0 where it has none */
  stop(): Promise<number>;
}

export interface DatabaseUse {
  cpuUs: number;
  logBytes: number;
}

export interface Subject {
  name: string;
  /**
   * Starts it in a process of its own and waits for its first answer.
   *
   * @param folder an empty one, for its store
   * @throws with what it said, when it cannot be started
   */
  start(folder: string): Promise<RunningSubject>;
}

/** Stores nothing. */
export const HTTP_ECHO = server('node:http echo', process.execPath, './floors/http-echo.ts');
/** As durable as the plant store, and nothing else. */
export const FLUSHED_ECHO = server('node:http echo, flushed', process.execPath, './floors/flushed-echo.ts');
/** Stores nothing. */
export const FASTIFY_ECHO = server('Fastify echo', process.execPath, './peers/fastify-echo.js');

const ELYSIA = './peers/elysia-bun-sqlite.js';

/** What people write today: each plant is a commit, on disk before the answer. */
export const DURABLE_PEERS: readonly Subject[] = [
  server('Express', process.execPath, './peers/express-better-sqlite3.js', ['FULL']),
  server('Fastify', process.execPath, './peers/fastify-better-sqlite3.js', ['FULL']),
  server('Elysia on Bun', BUN, ELYSIA, ['FULL']),
];

/** The fastest of them, answering before the plant is on disk. */
export const WEAKER_PEER = server('Elysia on Bun, synchronous NORMAL', BUN, ELYSIA, ['NORMAL']);

/**
 * The plant store on SQLite.
 *
 * @param command another one than that of this checkout
 * @param original a store that each start copies; without it each start makes a new store
 */
export function plantStoreOnSqlite(
  name: string,
  command: Command = THIS_CHECKOUT,
  original?: string,
): Subject {
  return {
    name,
    start: async folder => {
      const path = join(folder, 'plants.db');
      if (original !== undefined) {
        copyFileSync(original, path);
        // Not while it is measured.
        flush(path);
      }
      return await startPlantStore(command, `sqlite:${path}`, async () => storeBytes(path));
    },
  };
}

/** The plant store on a PostgreSQL server of its own, from an npm package. */
export function plantStoreOnPostgres(name: string): Subject {
  return {
    name,
    start: async () => {
      const postgres = await PostgresServer.start();
      const end = () => postgres[Symbol.asyncDispose]();
      try {
        const url = await postgres.createDatabase();
        const running = await startPlantStore(THIS_CHECKOUT, url, async () => {
          const bytes = await plantTableBytes(postgres, url);
          await end();
          return bytes;
        });
        return { ...running, databaseUse: () => databaseUse(postgres) };
      } catch (error) {
        await end();
        throw error;
      }
    },
  };
}

/** The plant store on a database that somebody else looks after. */
export function plantStoreOn(name: string, url: string): Subject {
  return { name, start: () => startPlantStore(THIS_CHECKOUT, url, async () => 0) };
}

function server(name: string, program: string, file: string, args: string[] = []): Subject {
  const script = fileURLToPath(new URL(file, import.meta.url));
  return {
    name,
    start: async folder => {
      const store = join(folder, 'store');
      mkdirSync(store);
      const path = join(store, 'plants.db');
      const running = await startServer(
        port => [program, script, String(port), PEER_TOKEN, path, ...args],
        PEER_TOKEN,
      );
      const stop = async () => {
        await running.stop();
        return storeBytes(path);
      };
      return { ...running, token: PEER_TOKEN, stop };
    },
  };
}

/** @param end is called once the service has stopped, and returns the size of its store */
async function startPlantStore(
  [program, ...args]: Command,
  database: string,
  end: () => Promise<number>,
): Promise<RunningSubject> {
  // Labels of a store are never used twice.
  const create = ['token', 'create', `bench ${Date.now()}`, '--database', database];
  const created = await runProgram([...args, ...create], { executable: program });
  if (created.exitCode !== 0) throw new Error(`no token could be made: ${created.stderr}`);
  const token = created.stdout.trim();
  const running = await startServer(port => {
    const listen = ['--listen', `127.0.0.1:${port}`, '--ops', '127.0.0.1:0'];
    return [program, ...args, 'serve', '--database', database, ...listen];
  }, token);
  const stop = async () => {
    await running.stop();
    return await end();
  };
  return { ...running, token, stop };
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
  const cpuUs = postgres.processIds().reduce((sum, pid) => sum + cpuUsOf(pid), 0);
  return { cpuUs, logBytes: Number(row!.bytes) };
}

/** With its indexes. */
async function plantTableBytes(postgres: PostgresServer, url: string): Promise<number> {
  const sql = `SELECT pg_total_relation_size('plant_revision') AS bytes`;
  const [row] = await postgres.query(sql, new URL(url).pathname.slice(1));
  return Number(row!.bytes);
}
