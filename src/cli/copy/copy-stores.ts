import { type CopySide, EMPTY_READER } from '../../store/copy/store-copy.ts';
import { checkNotServed, openCopyTarget, openReader, openReaderIfAny } from '../../store/open-store.ts';
import { type CopyTarget, type PlantReader, StoreRefused } from '../../store/plant-store.ts';
import { readDatabase } from '../database-option.ts';
import { Failure } from '../failure.ts';

/** What names the two stores. */
export interface CopyOptions {
  from: string;
  to: string;
  databasePasswordFile?: string;
  dryRun?: boolean;
}

/** The two stores of a copy, open. */
export interface CopyStores {
  source: CopySide;
  target: CopySide;
  /** The target as it is written; undefined when nothing is to be written. */
  writer: CopyTarget | undefined;
  /** There was no target. */
  targetIsNew: boolean;
  /** Revisions of the source; undefined when they are too many to be counted. */
  total: number | undefined;
}

const SOURCE = '--from';
const TARGET = '--to';

/**
 * Opens both stores, and makes the target unless it is a dry run. A source that cannot be read leaves no target behind.
 *
 * @param opened closes them
 * @throws {Failure} when one of them is not to be had, or both are the same
 */
export async function openStores(options: CopyOptions, opened: AsyncDisposableStack): Promise<CopyStores> {
  const { from, to, dryRun = false } = options;
  const sourceUrl = await at(SOURCE, async () => readDatabase({ ...options, database: from }));
  const targetUrl = await at(TARGET, async () => readDatabase({ ...options, database: to }));
  const source = await at(SOURCE, () => openReader(sourceUrl));
  opened.defer(() => source.close());
  const existing = await at(TARGET, () => openReaderIfAny(targetUrl));
  try {
    if (existing !== undefined) await checkDistinct(source, existing);
  } finally {
    await existing?.close();
  }
  const total = await source.countRevisions();
  let writer: CopyTarget | undefined;
  if (dryRun) await at(TARGET, async () => checkNotServed(targetUrl));
  else writer = await openWriter(targetUrl, opened);
  const target = dryRun && existing === undefined ? EMPTY_READER : await openTarget(targetUrl, opened);
  return {
    source: { name: SOURCE, reader: source },
    target: { name: TARGET, reader: target },
    writer,
    targetIsNew: existing === undefined,
    total,
  };
}

async function openWriter(url: string, opened: AsyncDisposableStack): Promise<CopyTarget> {
  const writer = await at(TARGET, () => openCopyTarget(url));
  opened.defer(() => writer.close());
  return writer;
}

async function openTarget(url: string, opened: AsyncDisposableStack): Promise<PlantReader> {
  const reader = await at(TARGET, () => openReader(url));
  opened.defer(() => reader.close());
  return reader;
}

/** By what the engines say, not by the addresses: there are many for one store. */
async function checkDistinct(source: PlantReader, target: PlantReader): Promise<void> {
  const identity = await source.identity();
  if (identity === undefined || identity !== (await target.identity())) return;
  throw new Failure('--from and --to name the same store; name another one with --to');
}

/** Says which of the two addresses is meant, where the stores know only one. */
async function at<T>(flag: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof StoreRefused || error instanceof Failure)) throw error;
    const message = `${flag}: ${error.message.replaceAll('--database', flag)}`;
    throw new Failure(message, error instanceof Failure ? error.exitCode : 1);
  }
}
