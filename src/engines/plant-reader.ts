import type { PlantRevision } from '../core/commit/plant-revision.ts';
import type { StoredToken } from '../core/tokens/stored-token.ts';
import type { DamageRecord } from './tables/damage-record.ts';

/** Reads whole stores for commands. A service may write to the store at the same time. */
export interface PlantReader extends AsyncDisposable {
  /**
   * Reads every revision in the order of ids, then revisions, in constant memory. All come from one
   * snapshot, taken at the first read.
   */
  revisions(from?: bigint): AsyncIterable<PlantRevision>;
  /**
   * Reads the same revisions in the same order, but in short statements, so the write-ahead log can
   * be restarted while the caller is slow. Later revisions may come from later snapshots.
   */
  revisionsInSlices(from?: bigint): AsyncIterable<PlantRevision>;
  /**
   * Looks up the latest revision of each of these ids. An unknown id has none. It runs short
   * statements, so it delays no writer; revisions may come from different snapshots.
   */
  latestRevisions(ids: readonly bigint[]): Promise<PlantRevision[]>;
  /** Counts all rows, which takes time. `bytes` is the size on disk, if the engine can tell. */
  size(): Promise<{ plants: number; revisions: number; bytes: number | undefined }>;
  tokens(): Promise<StoredToken[]>;
  knownDamage(): Promise<DamageRecord | undefined>;
  /** The largest `recordedAt` up to this time; 0 if there is none. */
  newestTime(until: number): Promise<number>;
  /**
   * Resolves when all revisions can be read that have a time up to this one. Each engine says in
   * which cases one can appear nevertheless. @param time not in the future
   */
  untilVisible(time: number): Promise<void>;
  /** Checks pages and indexes. @returns a text for each fault; undefined if that is not possible */
  structureFaults(): Promise<string[] | undefined>;
  /** Identifies this store, whatever its address is; undefined when the engine has no identity. */
  identity(): Promise<string | undefined>;
}
