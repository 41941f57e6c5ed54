import { setImmediate as nextIteration } from 'node:timers/promises';
import { batchLimiter, textLengthOf } from '../core/commit/batch-size.ts';
import type { IntactRevision } from '../core/commit/plant-revision.ts';
import { StoreDamaged, StoreRejected, StoreUnavailable } from '../core/commit/store-errors.ts';
import type { StoredToken } from '../core/tokens/stored-token.ts';
import type { CopyTarget } from '../engines/copy-target.ts';
import type { PlantReader } from '../engines/plant-reader.ts';
import { type CheckedRevision, checkedRevisions, Damaged } from './checked-revisions.ts';
import { missingRevisions, missingTokens } from './missing-rows.ts';
import { type Seal, SealDigest } from './seal.ts';
import { ITERATION_ROWS } from './verification.ts';

/** One of the two stores of a copy. */
export interface CopySide {
  name: string;
  /** Each call reads the current state of the store. */
  reader: PlantReader;
}

/** One pass over the source. */
export interface SourcePass {
  source: CopySide;
  /** The ids of the plants that are not copied, each with its revisions that the pass has read. */
  leftOut: Map<bigint, number>;
  /** Ends the pass between two rows. */
  stop: AbortSignal;
  /** @param revisions number of revisions of the source that were read since the last call */
  onRead(revisions: number): void;
  /** Called by checks and comparisons, once for each damaged revision that they read. */
  onDamaged(side: CopySide, damaged: Damaged): void;
}

export interface CopyPass extends SourcePass {
  target: CopySide;
}

/** Summary of the content of a store. The tokens are compared one by one. */
export type StoreSummary = Seal & { tokens: number };
export type CopyCount = Pick<StoreSummary, 'revisions' | 'tokens'>;

export interface StoreComparison {
  source: StoreSummary;
  target: StoreSummary;
  /** Rows that the target lacks. */
  missing: CopyCount;
}

/** Reads the whole source, to count the revisions of the plants that are left out. */
export async function countLeftOut(pass: SourcePass): Promise<void> {
  for await (const _ of rows(pass, pass.source));
}

/** @throws {StoreRejected} when the target contains a row that the source lacks, or leaves out */
export async function checkTarget(pass: CopyPass): Promise<void> {
  missingTokens(await tokensOf(pass.source), await tokensOf(pass.target));
  let isRead = false;
  async function* targetRows(): AsyncIterable<CheckedRevision> {
    for await (const revision of rows(pass, pass.target, reporter(pass, pass.target))) yield revision;
    isRead = true;
  }
  // The check is complete at the end of the target, since the target lacks all further rows.
  for await (const _ of missingRevisions(rows(pass, pass.source), targetRows())) if (isRead) break;
}

/**
 * Copies the rows that the target lacks. Each batch is durable before the next one is sent. The
 * tokens are read last, so the copy contains the token of every copied revision.
 *
 * @throws {StoreRejected} when the target contains a row that the source lacks
 */
export async function copyMissing(pass: CopyPass, writer: CopyTarget): Promise<CopyCount> {
  const { source, target } = pass;
  let revisions = 0;
  let writing = Promise.resolve();
  try {
    for await (const batch of batchesOf(missingRevisions(rows(pass, source), rows(pass, target)))) {
      await writing;
      writing = runOn(target, () => writer.insertRevisions(batch));
      // `writing` is awaited before the next write. Until then, the next batch is read.
      writing.catch(() => {});
      revisions += batch.length;
    }
  } finally {
    await writing;
  }
  const tokens = missingTokens(await tokensOf(source), await tokensOf(target));
  if (tokens.length > 0) await runOn(target, () => writer.putTokens(tokens));
  return { revisions, tokens: tokens.length };
}

/** Reads and digests every row. @throws {StoreRejected} for a row that only the target has */
export async function compareStores(pass: CopyPass): Promise<StoreComparison> {
  const { source, target } = pass;
  const [sourceDigest, targetDigest] = [SealDigest.ofAll(), SealDigest.ofAll()];
  let revisions = 0;
  const sourceRows = rows(pass, source, reporter(pass, source, sourceDigest));
  const targetRows = rows(pass, target, reporter(pass, target, targetDigest));
  for await (const _ of missingRevisions(sourceRows, targetRows)) revisions++;
  const [sourceTokens, targetTokens] = [await tokensOf(source), await tokensOf(target)];
  const tokens = missingTokens(sourceTokens, targetTokens).length;
  return {
    source: { ...sourceDigest.seal(), tokens: sourceTokens.length },
    target: { ...targetDigest.seal(), tokens: targetTokens.length },
    missing: { revisions, tokens },
  };
}

/** Makes a function that reports a damaged revision, and adds any other to the digest. */
function reporter(pass: SourcePass, side: CopySide, digest?: SealDigest): (each: CheckedRevision) => void {
  return each => (each instanceof Damaged ? pass.onDamaged(side, each) : digest?.add(each));
}

/**
 * Reads the revisions of one store, without the plants that the copy leaves out.
 *
 * @throws {StoreRejected} if the target has such a plant
 */
async function* rows(
  pass: SourcePass,
  side: CopySide,
  onRow?: (each: CheckedRevision) => void,
): AsyncIterable<CheckedRevision> {
  const onRead = side === pass.source ? pass.onRead : () => {};
  let count = 0;
  try {
    for await (const revision of checkedRevisions(side.reader.revisions())) {
      if (isLeftOut(pass, revision)) {
        if (side !== pass.source) throw leftOutInTarget(revision);
        pass.leftOut.set(revision.plant.id, pass.leftOut.get(revision.plant.id)! + 1);
      } else {
        onRow?.(revision);
        yield revision;
      }
      if (++count % ITERATION_ROWS !== 0) continue;
      onRead(ITERATION_ROWS);
      await nextIteration();
      pass.stop.throwIfAborted();
    }
  } catch (error) {
    throw withName(side, error);
  }
  onRead(count % ITERATION_ROWS);
}

/** A damaged revision is never left out, because its id may be wrong. It is reported. */
function isLeftOut({ leftOut }: SourcePass, revision: CheckedRevision): revision is IntactRevision {
  return !(revision instanceof Damaged) && leftOut.has(revision.plant.id);
}

function leftOutInTarget({ plant: { id } }: IntactRevision): StoreRejected {
  return new StoreRejected(`the target has plant ${id}, which --except leaves out`, {
    advice: 'no store deletes a plant, so name a new store with --to',
  });
}

function tokensOf(side: CopySide): Promise<StoredToken[]> {
  return runOn(side, () => side.reader.tokens());
}

/** Adds the name of the store to an error of the work. */
async function runOn<T>(side: CopySide, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw withName(side, error);
  }
}

function withName({ name }: CopySide, error: unknown): unknown {
  if (!(error instanceof StoreUnavailable)) return error;
  const ErrorClass = error instanceof StoreDamaged ? StoreDamaged : StoreUnavailable;
  return new ErrorClass(`${name}: ${error.fault}`, { advice: error.advice, cause: error });
}

/** Collects revisions in batches, each for one commit. */
async function* batchesOf(revisions: AsyncIterable<IntactRevision>): AsyncIterable<IntactRevision[]> {
  let batch: IntactRevision[] = [];
  let addIfFits = batchLimiter();
  try {
    for await (const revision of revisions) {
      const textLength = textLengthOf(revision.plant);
      if (!addIfFits(textLength)) {
        yield batch;
        batch = [];
        addIfFits = batchLimiter();
        addIfFits(textLength);
      }
      batch.push(revision);
    }
  } catch (error) {
    // If a page cannot be read, the rows before it are still copied.
    if (batch.length > 0) yield batch;
    throw error;
  }
  if (batch.length > 0) yield batch;
}
