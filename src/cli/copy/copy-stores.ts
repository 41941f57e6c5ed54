import type { CopySide } from '../../store/copy/store-copy.ts';
import { checkNotServed, openCopyTarget, openReader } from '../../store/open-store.ts';
import { type CopyTarget, type PlantReader, StoreMissing, StoreRefused } from '../../store/plant-store.ts';
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
  /** Writes the target; undefined for a dry run. */
  writer: CopyTarget | undefined;
  /** There was no target. */
  isTargetNew: boolean;
  /** Revisions of the source; undefined when they are too many to be counted. */
  total: number | undefined;
}

const SOURCE = '--from';
const TARGET = '--to';

/** A dry run makes no target: where there is none, this takes its place. */
const EMPTY_READER: CopySide['reader'] = {
  async *revisions() {},
  tokens: async () => [],
};

/**
 * Opens both stores, and makes the target unless it is a dry run. A source that cannot be read leaves no target behind.
 *
 * @param opened closes them
 * @throws {Failure} when one of them is not to be had, or both are the same
 */
export async function openStores(options: CopyOptions, opened: AsyncDisposableStack): Promise<CopyStores> {
  const { from, to, dryRun = false } = options;
  const open = async <T extends { close(): Promise<void> } | undefined>(
    flag: string,
    opening: () => Promise<T>,
  ): Promise<T> => {
    const store = await at(flag, opening);
    opened.defer(async () => store?.close());
    return store;
  };
  const sourceUrl = await at(SOURCE, async () => readDatabase({ ...options, database: from }));
  const targetUrl = await at(TARGET, async () => readDatabase({ ...options, database: to }));
  const source = await open(SOURCE, () => openReader(sourceUrl));
  const existing = await open(TARGET, () => openReader(targetUrl).catch(ifMissing));
  if (existing !== undefined) await checkDistinct(source, existing);
  const total = await source.countRevisions();
  if (dryRun) await at(TARGET, async () => checkNotServed(targetUrl));
  const writer = dryRun ? undefined : await open(TARGET, () => openCopyTarget(targetUrl));
  const target = existing ?? (dryRun ? EMPTY_READER : await open(TARGET, () => openReader(targetUrl)));
  return {
    source: { name: SOURCE, reader: source },
    target: { name: TARGET, reader: target },
    writer,
    isTargetNew: existing === undefined,
    total,
  };
}

function ifMissing(error: unknown): undefined {
  if (!(error instanceof StoreMissing)) throw error;
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
