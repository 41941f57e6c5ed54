import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import type { RepeatedIdRule, WriteResult } from '../../src/core/commit/plant-commits.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';
import type { StorageEngine } from '../../src/engines/storage-engine.ts';
import { openCommandStore, openServedStore } from './open-store.ts';
import { plantWrite } from './plant-write.ts';
import { PATIENCE, PostgresServer } from './postgres-server.ts';
import { testFolder } from './test-folder.ts';

/** An engine with real databases, for the tests of all stores. */
export interface EngineUnderTest {
  name: 'SQLite' | 'PostgreSQL';
  newDatabase(): Promise<string>;
  sql(database: string, text: string): Promise<Record<string, unknown>[]>;
}

/**
 * Both engines, of which PostgreSQL runs until the tests of the file end. Await it before the first
 * `test` of the file: later, the runner may end the file without more tests.
 */
export async function enginesUnderTest(): Promise<[sqlite: EngineUnderTest, postgres: EngineUnderTest]> {
  return [sqliteUnderTest(), await postgresUnderTest()];
}

export function sqliteUnderTest(): EngineUnderTest {
  const folder = testFolder();
  let databases = 0;
  return {
    name: 'SQLite',
    newDatabase: async () => {
      // In a separate folder, because SQLite and the service create files beside the database.
      const subfolder = join(folder, String(++databases));
      mkdirSync(subfolder);
      return `sqlite:${join(subfolder, 'plants.db')}`;
    },
    sql: async (database, text) => {
      using client = new DatabaseSync(pathOf(database), { timeout: 20_000 });
      return client
        .prepare(text)
        .all()
        .map(row => ({ ...row }));
    },
  };
}

export async function postgresUnderTest(
  settings?: Record<string, string>,
  initArgs?: readonly string[],
): Promise<EngineUnderTest & { server: PostgresServer }> {
  const server = await PostgresServer.start(settings, initArgs);
  after(() => server[Symbol.asyncDispose]());
  return {
    name: 'PostgreSQL',
    server,
    newDatabase: async () => (await server.createDatabase()) + PATIENCE,
    sql: (database, text) => server.query(text, databaseName(database)),
  };
}

export function databaseName(database: string): string {
  return new URL(database).pathname.slice(1);
}

/** Opens the store as a service does; `await using` closes it. */
export async function openStore(
  database: string,
  repeatedIdRule: RepeatedIdRule = 'revise',
): Promise<StorageEngine & AsyncDisposable> {
  const served = await openServedStore({ database, repeatedIdRule, connections: 4 });
  return Object.assign(served.engine, { [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() });
}

export async function openNewStore(
  under: EngineUnderTest,
): Promise<StorageEngine & AsyncDisposable & { database: string }> {
  const database = await under.newDatabase();
  return Object.assign(await openStore(database), { database });
}

/** Opens the store as `token` does beside a service; `await using` closes it. */
export async function openTokens(database: string): Promise<StorageEngine & AsyncDisposable> {
  const engine = await openCommandStore(database);
  return Object.assign(engine, { [Symbol.asyncDispose]: () => engine.close() });
}

/** Stores plants in one batch, by the token 1. */
export function commit(engine: StorageEngine, ...plants: NewPlant[]): Promise<WriteResult[]> {
  return engine.commit(plants.map(plant => plantWrite(plant, 1)));
}

/** Plants of one name with the ids from 0. */
export function numbered(count: number, name: string): NewPlant[] {
  return Array.from({ length: count }, (_, index) => ({ id: BigInt(index), name }));
}

export function pathOf(database: string): string {
  return database.replace('sqlite:', '');
}
