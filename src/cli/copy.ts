import { Command } from 'commander';
import {
  type Comparison,
  type CopyCount,
  type CopyPass,
  checkTarget,
  compareStores,
  copyMissing,
} from '../store/copy/store-copy.ts';
import type { StoreSummary } from '../store/copy/store-digest.ts';
import { type CopyTarget, StoreUnavailable } from '../store/plant-store.ts';
import { type CopyOptions, type CopyStores, openStores } from './copy/copy-stores.ts';
import { amount, CountedProgress } from './counted-progress.ts';
import { passwordFileOption } from './database-option.ts';
import { Failure } from './failure.ts';
import { formatCount, perSecond } from './import/tally.ts';
import { Interruption, stoppable } from './interruption.ts';

const HELP = `
The source is only read, and a service may be running on it. The target is made when it is not there; one that is must
hold a part of the source and nothing else. Nothing is written over: run the same command again after whatever stopped
it, or when the source took more, and the rest is copied.

To move with little time away: copy while the service runs, stop it, copy again, start it on the target.

At the end every row of both stores is read again and compared. Exit code 0 means that they are equal.

Example:
  $ npx plant-store copy --from sqlite:./data/plant-store.db --to postgres://plant_owner@db.example/plants`;

/** `copy --from URL --to URL`: makes one store hold what another one does. */
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
  try {
    await stoppable(async stop => {
      await using opened = new AsyncDisposableStack();
      const stores = await openStores(options, opened);
      if (stores.writer === undefined) await tryOut(stores, stop);
      else await copyAndCompare(stores, stores.writer, stop);
    });
  } catch (error) {
    if (error instanceof Interruption) {
      console.error('plant-store: stopped; what was copied stays, and the same command goes on from there');
      process.exitCode = error.exitCode;
      return;
    }
    if (!(error instanceof StoreUnavailable)) throw error;
    throw new Failure(`${error.message}; what was copied stays, and the same command goes on from there`);
  }
}

async function tryOut(stores: CopyStores, stop: AbortSignal): Promise<void> {
  const { missing } = await pass('comparing', stores, stop, compareStores);
  const where = stores.isTargetNew ? ' to a new store' : '';
  console.log(`would copy ${counted(missing)}${where}; nothing was written`);
}

async function copyAndCompare(stores: CopyStores, writer: CopyTarget, stop: AbortSignal): Promise<void> {
  await pass('checking', stores, stop, checkTarget);
  const startMs = performance.now();
  const copied = await pass('copying', stores, stop, each => copyMissing(each, writer));
  const elapsedMs = performance.now() - startMs;
  const rate = formatCount(perSecond(copied.revisions, elapsedMs));
  console.log(`copied ${counted(copied)} in ${(elapsedMs / 1000).toFixed(1)} s (${rate}/s)`);
  report(await pass('comparing', stores, stop, compareStores));
}

/** Reads the source once, with a bar. */
async function pass<T>(
  title: string,
  { source, target, total }: CopyStores,
  stop: AbortSignal,
  work: (pass: CopyPass) => Promise<T>,
): Promise<T> {
  const progress = new CountedProgress(title, 'revisions', total);
  const onRead = (revisions: number): void => {
    progress.done += revisions;
  };
  try {
    return await work({ source, target, stop, onRead });
  } finally {
    progress.stop();
  }
}

/** @throws {Failure} when the two stores are not equal */
function report({ source, target, missing }: Comparison): void {
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
