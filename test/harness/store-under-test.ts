import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import { openServedStore, openTokenStore } from '../../src/store/open-store.ts';
import type { RepeatedIdRule, StorageEngine } from '../../src/store/plant-store.ts';
import { PostgresServer } from './postgres-server.ts';

/** An engine that the tests of every store are run on, with real databases of its own. */
export interface EngineUnderTest {
  name: 'SQLite' | 'PostgreSQL';
  /** @returns the address of a database that is new and empty */
  newDatabase(): Promise<string>;
  /** Runs SQL as an SQL client would, on a connection of its own. */
  sql(database: string, text: string): Promise<Record<string, unknown>[]>;
}

/**
 * Both engines, to be looped over: what holds of one store holds of the other. PostgreSQL runs until the tests of the
 * file are over.
 *
 * To be awaited before the first test of the file is named: after that, the file is over as soon as none is left.
 */
export async function enginesUnderTest(): Promise<[sqlite: EngineUnderTest, postgres: EngineUnderTest]> {
  return [sqliteUnderTest(), await postgresUnderTest()];
}

export function sqliteUnderTest(): EngineUnderTest {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-sqlite-'));
  after(() => rmSync(folder, { recursive: true }));
  let databases = 0;
  return {
    name: 'SQLite',
    newDatabase: async () => {
      // Each in a folder of its own, with its log and its lock.
      const own = join(folder, String(++databases));
      mkdirSync(own);
      return `sqlite:${join(own, 'plants.db')}`;
    },
    sql: async (database, text) => {
      using client = new DatabaseSync(database.replace('sqlite:', ''));
      return client
        .prepare(text)
        .all()
        .map(row => ({ ...row }));
    },
  };
}

/** @param settings as `postgresql.conf` has them */
export async function postgresUnderTest(
  settings?: Record<string, string>,
): Promise<EngineUnderTest & { server: PostgresServer }> {
  const server = await PostgresServer.start(settings);
  after(() => server[Symbol.asyncDispose]());
  return {
    name: 'PostgreSQL',
    server,
    newDatabase: () => server.createDatabase(),
    sql: (database, text) => server.query(text, databaseName(database)),
  };
}

/** The name of a PostgreSQL database in its address. */
export function databaseName(database: string): string {
  return new URL(database).pathname.slice(1);
}

/** The store as a service has it; `await using` closes it. */
export async function openStore(
  database: string,
  repeatedIdRule: RepeatedIdRule = 'revise',
): Promise<StorageEngine & AsyncDisposable> {
  const store = await openServedStore({ database, repeatedIdRule, connections: 4 });
  return Object.assign(store.engine, { [Symbol.asyncDispose]: store[Symbol.asyncDispose] });
}

/** A new store; `await using` closes it. */
export async function openNewStore(
  under: EngineUnderTest,
  rule?: RepeatedIdRule,
): Promise<StorageEngine & AsyncDisposable & { database: string }> {
  const database = await under.newDatabase();
  return Object.assign(await openStore(database, rule), { database });
}

/** The store as the command line has it to manage tokens, beside a service; `await using` closes it. */
export async function openTokens(database: string): Promise<StorageEngine & AsyncDisposable> {
  const engine = await openTokenStore(database);
  return Object.assign(engine, { [Symbol.asyncDispose]: () => engine.close() });
}
