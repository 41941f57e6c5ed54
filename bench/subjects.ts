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
/** The token of the peers, as long as one of the plant store. */
const PEER_TOKEN = 'peer_00000000000000000000000000000000000000';
/** From the packages of the benchmark. */
const BUN = fileURLToPath(new URL('./node_modules/bun/bin/bun.exe', import.meta.url));

/** A server that accepts `POST /plants`. */
export interface RunningSubject {
  url: string;
  token: string;
  /** From its start to its first 200. */
  startMs: number;
  pid: number;
  /** The resources that its database server has used since its start. */
  databaseUse?(): Promise<DatabaseUse>;
  /** @returns the size of its store with all files; 0 without a store */
  stop(): Promise<number>;
}

export interface DatabaseUse {
  cpuUs: number;
  walBytes: number;
}

export interface Subject {
  name: string;
  /**
   * Starts it as a process and waits for its first 200.
   *
   * @param folder an empty folder for its store
   * @throws with its messages, if it cannot start
   */
  start(folder: string): Promise<RunningSubject>;
}

/** Stores nothing. */
export const HTTP_ECHO = server('node:http echo', process.execPath, './floors/http-echo.ts');
/** As durable as the plant store, without any other feature. */
export const FLUSHED_ECHO = server('node:http echo, flushed', process.execPath, './floors/flushed-echo.ts');
/** Stores nothing. */
export const FASTIFY_ECHO = server('Fastify echo', process.execPath, './peers/fastify-echo.js');

const ELYSIA = './peers/elysia-bun-sqlite.js';

/** Common designs: each plant is a commit, on disk before the response. */
export const DURABLE_PEERS: readonly Subject[] = [
  server('Express', process.execPath, './peers/express-better-sqlite3.js', ['FULL']),
  server('Fastify', process.execPath, './peers/fastify-better-sqlite3.js', ['FULL']),
  server('Elysia on Bun', BUN, ELYSIA, ['FULL']),
];

/** The fastest of them, with a response before the plant is on disk. */
export const LESS_DURABLE_PEER = server('Elysia on Bun, synchronous NORMAL', BUN, ELYSIA, ['NORMAL']);

/**
 * The plant store on SQLite.
 *
 * @param command by default the program of this checkout
 * @param original a store that each start copies; by default each start creates a new store
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
        // Otherwise the flush would happen during the measurement.
        flush(path);
      }
      return await startPlantStore(command, `sqlite:${path}`, async () => storeBytes(path));
    },
  };
}

/** The plant store on a new PostgreSQL server from an npm package. */
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

/** The plant store on an existing database. */
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

/** @param end called after the service has stopped; returns the size of its store */
async function startPlantStore(
  [program, ...args]: Command,
  database: string,
  end: () => Promise<number>,
): Promise<RunningSubject> {
  // A store does not accept a label twice.
  const create = ['token', 'create', `bench ${Date.now()}`, '--database', database];
  const created = await runProgram([...args, ...create], { executable: program });
  if (created.exitCode !== 0) throw new Error(`cannot create a token: ${created.stderr}`);
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

/** The size of an SQLite database with its -wal and -shm files. */
function storeBytes(path: string): number {
  const files = [path, `${path}-wal`, `${path}-shm`];
  return files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
}

async function databaseUse(postgres: PostgresServer): Promise<DatabaseUse> {
  const [row] = await postgres.query(`SELECT pg_current_wal_lsn() - '0/0' AS bytes`);
  const cpuUs = postgres.processIds().reduce((sum, pid) => sum + cpuUsOf(pid), 0);
  return { cpuUs, walBytes: Number(row!.bytes) };
}

/** The size of the table with its indexes. */
async function plantTableBytes(postgres: PostgresServer, url: string): Promise<number> {
  const sql = `SELECT pg_total_relation_size('plant_revision') AS bytes`;
  const [row] = await postgres.query(sql, new URL(url).pathname.slice(1));
  return Number(row!.bytes);
}
