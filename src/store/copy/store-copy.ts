import { setImmediate as nextTurn } from 'node:timers/promises';
import { BATCH_PLANTS_MAX, BATCH_TEXT_LENGTH_MAX } from '../../contract/limits.ts';
import type { StoredToken } from '../../contract/stored-token.ts';
import { type CopyTarget, type PlantReader, type PlantRevision, StoreUnavailable } from '../plant-store.ts';
import { missingRevisions } from './missing-revisions.ts';
import { missingTokens } from './missing-tokens.ts';
import { StoreDigest, type StoreSummary } from './store-digest.ts';

/** One of the two stores of a copy. */
export interface CopySide {
  /** As failures call it. */
  name: string;
  /** Asked again, it shows the store as it is then. */
  reader: Pick<PlantReader, 'revisions' | 'tokens'>;
}

/** Of a store that is not there yet. */
export const EMPTY_READER: CopySide['reader'] = {
  async *revisions() {},
  tokens: async () => [],
};

/** Whoever looks on. */
export interface CopyWatcher {
  /** Ends what is under way between two rows, with its reason. */
  stop: AbortSignal;
  /** So many more revisions of the source were read. */
  onRead(revisions: number): void;
}

export interface CopyCount {
  revisions: number;
  tokens: number;
}

/** Two stores at the end of a copy. */
export interface Comparison {
  source: StoreSummary;
  target: StoreSummary;
  /** What the source has beyond the target: it took more since it was copied. */
  missing: CopyCount;
}

/** After so many rows the timers and signals get their turn: an engine that reads without waiting leaves them none. */
const TURN_ROWS = 512;

/**
 * Makes sure that the target holds nothing but a part of the source, before anything is written to it.
 *
 * @throws {StoreRefused} when it does
 */
export async function checkTarget(source: CopySide, target: CopySide, watcher: CopyWatcher): Promise<void> {
  missingTokens(await tokensOf(source), await tokensOf(target));
  let isRead = false;
  const kept = read(target, watcher.stop, { onEnd: () => (isRead = true) });
  // Behind the end of the target the source needs no reading: all that comes there is only missing.
  for await (const _ of missingRevisions(readSource(source, watcher), kept)) if (isRead) break;
}

/** What {@link copyMissing} would copy. @throws {StoreRefused} as {@link checkTarget} does */
export async function countMissing(
  source: CopySide,
  target: CopySide,
  watcher: CopyWatcher,
): Promise<CopyCount> {
  const tokens = missingTokens(await tokensOf(source), await tokensOf(target)).length;
  let revisions = 0;
  const kept = read(target, watcher.stop);
  for await (const _ of missingRevisions(readSource(source, watcher), kept)) revisions++;
  return { revisions, tokens };
}

/**
 * Copies what the target lacks, each batch durable before the next one is sent. It may end anywhere and be begun again.
 *
 * The tokens come last, and are read last: so the token of every revision is known, also of one made an instant ago.
 *
 * @param target the same store as writer
 * @throws {StoreRefused} when the target turns out to hold something else
 */
export async function copyMissing(
  source: CopySide,
  target: CopySide,
  writer: CopyTarget,
  watcher: CopyWatcher,
): Promise<CopyCount> {
  let revisions = 0;
  let writing = Promise.resolve();
  const kept = read(target, watcher.stop);
  try {
    for await (const batch of batchesOf(missingRevisions(readSource(source, watcher), kept))) {
      await writing;
      writing = on(target, () => writer.insertRevisions(batch));
      // It is waited for behind the next batch, which is read meanwhile.
      writing.catch(() => {});
      revisions += batch.length;
    }
  } finally {
    await writing;
  }
  const tokens = missingTokens(await tokensOf(source), await tokensOf(target));
  if (tokens.length > 0) await on(target, () => writer.putTokens(tokens));
  return { revisions, tokens: tokens.length };
}

/**
 * Reads every row of both sides again, and digests it.
 *
 * @throws {StoreRefused} when the target holds what the source does not
 */
export async function compareStores(
  source: CopySide,
  target: CopySide,
  watcher: CopyWatcher,
): Promise<Comparison> {
  const missing: CopyCount = { revisions: 0, tokens: 0 };
  const sourceDigest = new StoreDigest();
  const targetDigest = new StoreDigest();
  const sourceRows = readSource(source, watcher, sourceDigest);
  const targetRows = read(target, watcher.stop, { digest: targetDigest });
  for await (const _ of missingRevisions(sourceRows, targetRows)) missing.revisions++;
  const [sourceTokens, targetTokens] = [await tokensOf(source), await tokensOf(target)];
  for (const token of sourceTokens) sourceDigest.addToken(token);
  for (const token of targetTokens) targetDigest.addToken(token);
  missing.tokens = missingTokens(sourceTokens, targetTokens).length;
  return { source: sourceDigest.summary(), target: targetDigest.summary(), missing };
}

function readSource(
  source: CopySide,
  { stop, onRead }: CopyWatcher,
  digest?: StoreDigest,
): AsyncIterable<PlantRevision> {
  return read(source, stop, { digest, onRead });
}

interface Reading {
  digest?: StoreDigest | undefined;
  onRead?: (revisions: number) => void;
  onEnd?: () => void;
}

async function* read(
  side: CopySide,
  stop: AbortSignal,
  { digest, onRead, onEnd }: Reading = {},
): AsyncIterable<PlantRevision> {
  let count = 0;
  try {
    for await (const revision of side.reader.revisions()) {
      digest?.addRevision(revision);
      yield revision;
      if (++count % TURN_ROWS !== 0) continue;
      onRead?.(TURN_ROWS);
      await nextTurn();
      stop.throwIfAborted();
    }
  } catch (error) {
    throw named(side, error);
  }
  onRead?.(count % TURN_ROWS);
  onEnd?.();
}

function tokensOf(side: CopySide): Promise<StoredToken[]> {
  return on(side, () => side.reader.tokens());
}

async function on<T>(side: CopySide, work: () => Promise<T>): Promise<T> {
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
    if (
      batch.length === BATCH_PLANTS_MAX ||
      (batch.length > 0 && textLength + length > BATCH_TEXT_LENGTH_MAX)
    ) {
      yield batch;
      batch = [];
      textLength = 0;
    }
    batch.push(revision);
    textLength += length;
  }
  if (batch.length > 0) yield batch;
}
