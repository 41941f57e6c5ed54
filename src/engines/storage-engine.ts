import type { CommitEngine } from '../core/commit/plant-commits.ts';
import type { OperatorTables } from './tables/operator-tables.ts';
import type { TokenTable } from './tables/token-table.ts';

export interface SqliteStatistics {
  kind: 'sqlite';
  /** Number of flushed commits, and the total time of their flushes. */
  flushes: { count: number; totalMs: number };
  walBytes: number;
  /** Whether the last copy of the write-ahead log into the database file failed. */
  isCheckpointFailing: boolean;
  /** The file system of the store; undefined if unknown, such as after its folder was deleted. */
  disk: Disk | undefined;
}

export interface Disk {
  bytes: number;
  /** What this user may still write. */
  freeBytes: number;
}

export interface PostgresStatistics {
  kind: 'postgres';
  /** Connections to the server, open or being opened. */
  connections: number;
}

export type EngineStatistics = SqliteStatistics | PostgresStatistics;

/** The last schema step of a store, now and before it was opened (0 if it did not exist). */
export interface SchemaSteps {
  before: number;
  now: number;
}

/** @returns undefined if the store is new, or already had this schema */
export function schemaUpdateOf({ before, now }: SchemaSteps): string | undefined {
  if (before === 0 || before === now) return undefined;
  return `the schema of the store was updated from step ${before} to step ${now}`;
}

/** An open store. Group commit is implemented once, above every engine. */
export interface StorageEngine extends CommitEngine {
  readonly operatorTables: OperatorTables;
  readonly tokenTable: TokenTable;
  readonly schemaSteps: SchemaSteps;
  /** About when the store got its first plant, in ms since 1970; undefined: it has none. */
  firstPlantAt(): Promise<number | undefined>;
  /** Does not access the database. Never throws. */
  statistics(): Promise<EngineStatistics>;
  close(): Promise<void>;
}
