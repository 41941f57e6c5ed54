import { setImmediate as nextIteration } from 'node:timers/promises';
import type { StoredToken } from '../../contract/stored-token.ts';
import { BATCH_PLANTS_MAX, BATCH_TEXT_LENGTH_MAX } from '../limits.ts';
import { type CopyTarget, type PlantReader, type PlantRevision, StoreUnavailable } from '../plant-store.ts';
import { missingRevisions, missingTokens } from './missing-rows.ts';
import { StoreDigest, type StoreSummary } from './store-digest.ts';

/** One of the two stores of a copy. */
export interface CopySide {
  name: string;
  /** Each time it is read, it shows the store as it is then. */
  reader: Pick<PlantReader, 'revisions' | 'tokens'>;
}

export interface CopyPass {
  source: CopySide;
  target: CopySide;
  /** Ends the pass between two rows, with its reason. */
  stop: AbortSignal;
  /** So many more revisions of the source were read. */
  onRead(revisions: number): void;
}

export type CopyCount = Pick<StoreSummary, 'revisions' | 'tokens'>;

/** Timers and signals are handled after so many rows: an engine that reads without waiting never lets them. */
const ITERATION_ROWS = 512;

/** @throws {StoreRefused} when the target holds anything but a part of the source */
export async function checkTarget(pass: CopyPass): Promise<void> {
  missingTokens(await tokensOf(pass.source), await tokensOf(pass.target));
  let isRead = false;
  async function* targetRows(): AsyncIterable<PlantRevision> {
    for await (const revision of rows(pass, pass.target)) yield revision;
    isRead = true;
  }
  // After the end of the target the source needs no reading: its further rows are only missing.
  for await (const _ of missingRevisions(rows(pass, pass.source), targetRows())) if (isRead) break;
}

/**
 * Copies what the target lacks, each batch durable before the next one is sent. It may end anywhere and be begun again.
 *
 * The tokens come last, and are read last: so the token of every revision is known, also of one made an instant ago.
 *
 * @throws {StoreRefused} when the target turns out to hold something else
 */
export async function copyMissing(pass: CopyPass, writer: CopyTarget): Promise<CopyCount> {
  const { source, target } = pass;
  let revisions = 0;
  let writing = Promise.resolve();
  try {
    for await (const batch of batchesOf(missingRevisions(rows(pass, source), rows(pass, target)))) {
      await writing;
      writing = at(target, () => writer.insertRevisions(batch));
      // Awaited after the next batch, which is read meanwhile.
      writing.catch(() => {});
      revisions += batch.length;
    }
  } finally {
    await writing;
  }
  const tokens = missingTokens(await tokensOf(source), await tokensOf(target));
  if (tokens.length > 0) await at(target, () => writer.putTokens(tokens));
  return { revisions, tokens: tokens.length };
}

/** Reads and digests every row of both stores. @throws {StoreRefused} when the target holds what the source does not */
export async function compareStores(pass: CopyPass) {
  const { source, target } = pass;
  const [sourceDigest, targetDigest] = [new StoreDigest(), new StoreDigest()];
  let revisions = 0;
  const sourceRows = rows(pass, source, sourceDigest);
  const targetRows = rows(pass, target, targetDigest);
  for await (const _ of missingRevisions(sourceRows, targetRows)) revisions++;
  const [sourceTokens, targetTokens] = [await tokensOf(source), await tokensOf(target)];
  const tokens = missingTokens(sourceTokens, targetTokens).length;
  return {
    source: sourceDigest.summary(sourceTokens),
    target: targetDigest.summary(targetTokens),
    /** What the source has beyond the target. */
    missing: { revisions, tokens },
  };
}

async function* rows(pass: CopyPass, side: CopySide, digest?: StoreDigest): AsyncIterable<PlantRevision> {
  const onRead = side === pass.source ? pass.onRead : () => {};
  let count = 0;
  try {
    for await (const revision of side.reader.revisions()) {
      digest?.addRevision(revision);
      yield revision;
      if (++count % ITERATION_ROWS !== 0) continue;
      onRead(ITERATION_ROWS);
      await nextIteration();
      pass.stop.throwIfAborted();
    }
  } catch (error) {
    throw named(side, error);
  }
  onRead(count % ITERATION_ROWS);
}

function tokensOf(side: CopySide): Promise<StoredToken[]> {
  return at(side, () => side.reader.tokens());
}

async function at<T>(side: CopySide, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw named(side, error);
  }
}

/** Says which of the two stores it was. */
function named({ name }: CopySide, error: unknown): unknown {
  if (!(error instanceof StoreUnavailable)) return error;
  return new StoreUnavailable(`${name}: ${error.message}`, { cause: error });
}

/** As many as one commit of the service may hold. */
async function* batchesOf(revisions: AsyncIterable<PlantRevision>): AsyncIterable<PlantRevision[]> {
  let batch: PlantRevision[] = [];
  let textLength = 0;
  for await (const revision of revisions) {
    const { name, tag = '' } = revision.plant;
    const length = name.length + tag.length;
    const isFull = batch.length === BATCH_PLANTS_MAX || textLength + length > BATCH_TEXT_LENGTH_MAX;
    if (isFull && batch.length > 0) {
      yield batch;
      batch = [];
      textLength = 0;
    }
    batch.push(revision);
    textLength += length;
  }
  if (batch.length > 0) yield batch;
}
