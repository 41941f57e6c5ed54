import { Command } from 'commander';
import {
  type CopyCount,
  type CopyPass,
  type CopySide,
  checkTarget,
  compareStores,
  copyMissing,
} from '../store/copy/store-copy.ts';
import type { StoreSummary } from '../store/copy/store-digest.ts';
import { checkNotServed, openCopyTarget, openReader } from '../store/open-store.ts';
import { type PlantReader, StoreMissing, StoreRejected, StoreUnavailable } from '../store/plant-store.ts';
import { passwordFileOption, readDatabase } from './database-option.ts';
import { Failure } from './failure.ts';
import { stoppable } from './interruption.ts';
import { amount, CountedProgress, formatCount, perSecond } from './progress-display.ts';

const HELP = `
The source is only read, and a service may be running on it. The target is made when it is not there; one that is must
hold a part of the source and nothing else. Nothing is written over: run the same command again after whatever stopped
it, or when the source took more, and the rest is copied.

To move with little time away: copy while the service runs, stop it, copy again, start it on the target.

At the end every row of both stores is read again and compared. Exit code 0 means that they are equal.

Example:
  $ npx plant-store copy --from sqlite:./data/plant-store.db --to postgres://plant_owner@db.example/plants`;

interface CopyOptions {
  from: string;
  to: string;
  databasePasswordFile?: string;
  dryRun?: boolean;
}

const SOURCE = '--from';
const TARGET = '--to';

/** A dry run makes no target: where there is none, this takes its place. */
const EMPTY_READER: CopySide['reader'] = {
  async *revisions() {},
  tokens: async () => [],
};

export function copyCommand(): Command {
  return new Command('copy')
    .description('copy a store to another engine or place, tokens and history included, and compare the two')
    .requiredOption('--from <url>', 'the store to read: sqlite:PATH, or postgres://USER@HOST:PORT/DATABASE')
    .requiredOption('--to <url>', 'the store to write, as above')
    .addOption(passwordFileOption())
    .option('--dry-run', 'say what would be copied, and write nothing')
    .addHelpText('after', HELP)
    .action(copy);
}

async function copy(options: CopyOptions): Promise<void> {
  const rest = 'what was copied stays, and the same command goes on from there';
  try {
    await stoppable(stop => copyStore(options, stop), rest);
  } catch (error) {
    throw error instanceof StoreUnavailable ? new Failure(`${error.message}; ${rest}`) : error;
  }
}

async function copyStore(options: CopyOptions, stop: AbortSignal): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const open = <T extends AsyncDisposable | undefined>(flag: string, opening: () => Promise<T>): Promise<T> =>
    at(flag, async () => opened.use(await opening()));

  const sourceUrl = await at(SOURCE, async () => readDatabase({ ...options, database: options.from }));
  const targetUrl = await at(TARGET, async () => readDatabase({ ...options, database: options.to }));
  // The source first: one that cannot be read leaves no target behind.
  const source = await open(SOURCE, () => openReader(sourceUrl));
  const existing = await open(TARGET, () => openReader(targetUrl).catch(ifMissing));
  if (existing !== undefined) await checkDistinct(source, existing);
  const total = await source.countRevisions();
  const pass = async <T>(title: string, work: (pass: CopyPass) => Promise<T>, target: CopySide['reader']) => {
    using progress = new CountedProgress(title, 'revisions', total);
    const onRead = (revisions: number): void => {
      progress.done += revisions;
    };
    const sides = { source: { name: SOURCE, reader: source }, target: { name: TARGET, reader: target } };
    return await work({ ...sides, stop, onRead });
  };

  if (options.dryRun) {
    await at(TARGET, async () => checkNotServed(targetUrl));
    const { missing } = await pass('comparing', compareStores, existing ?? EMPTY_READER);
    const where = existing === undefined ? ' to a new store' : '';
    console.log(`would copy ${counted(missing)}${where}; nothing was written`);
    return;
  }
  const writer = await open(TARGET, () => openCopyTarget(targetUrl));
  const target = existing ?? (await open(TARGET, () => openReader(targetUrl)));
  await pass('checking', checkTarget, target);
  const startMs = performance.now();
  const copied = await pass('copying', each => copyMissing(each, writer), target);
  const elapsedMs = performance.now() - startMs;
  const rate = formatCount(perSecond(copied.revisions, elapsedMs));
  console.log(`copied ${counted(copied)} in ${(elapsedMs / 1000).toFixed(1)} s (${rate}/s)`);
  report(await pass('comparing', compareStores, target));
}

/** @throws {Failure} when the two stores are not equal */
function report({ source, target, missing }: Awaited<ReturnType<typeof compareStores>>): void {
  console.log(`source: ${summary(source)}\ntarget: ${summary(target)}`);
  if (missing.revisions + missing.tokens > 0) {
    console.log('not equal');
    throw new Failure(
      `the source has taken ${counted(missing)} since it was copied; stop the service on it, and run the same command again, which copies the rest`,
    );
  }
  if (summary(source) !== summary(target)) {
    console.log('not equal');
    throw new Failure('the two stores differ, which must not happen; do not use the target, and report this');
  }
  console.log('equal');
}

function summary({ revisions, plants, tokens, digest }: StoreSummary): string {
  return `${counted({ revisions, tokens })}, ${amount(plants, 'plant')}, SHA-256 ${digest}`;
}

function counted({ revisions, tokens }: CopyCount): string {
  return `${amount(revisions, 'revision')} and ${amount(tokens, 'token')}`;
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
    if (!(error instanceof StoreRejected || error instanceof Failure)) throw error;
    const message = `${flag}: ${error.message.replaceAll('--database', flag)}`;
    throw new Failure(message, error instanceof Failure ? error.exitCode : 1);
  }
}
