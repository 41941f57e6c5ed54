import { Command } from 'commander';
import type { Damaged } from '../store/audit/checked-revisions.ts';
import {
  type CopyCount,
  type CopyPass,
  type CopySide,
  checkTarget,
  compareStores,
  copyMissing,
  type StoreSummary,
} from '../store/audit/store-copy.ts';
import { openCopyTarget, openReader } from '../store/open-store.ts';
import {
  type PlantReader,
  StoreDamaged,
  StoreMissing,
  StoreRejected,
  StoreUnavailable,
} from '../store/plant-store.ts';
import { stoppable } from './interruption.ts';
import { passwordFileOption, readDatabase } from './options/database-option.ts';
import { reportDamage } from './output/damage.ts';
import { Failure } from './output/failure.ts';
import { amount, CountedProgress, formatCount, perSecond } from './output/progress-display.ts';

const HELP = `
The command only reads the source. A service may use the source meanwhile.

If the target does not exist, the command creates it. If the target exists, each
of its rows must also be in the source. The command never overwrites a row.
After an interruption, or if the source has new rows, run the command again: it
copies only the missing rows.

To move a service to another store with a short downtime, copy while the service
runs. Then stop the service, copy again, and start the service with the target.

At the end the command compares every row of both stores. Exit code 0 means that
the stores are equal. Damaged revisions are reported on stderr and not copied,
and the exit code is 1.

Example:
  $ npx plant-store copy --from sqlite:./data/plant-store.db --to postgres://plant_owner@db.example/plants`;

interface CopyOptions {
  from: string;
  to: string;
  databasePasswordFile?: string;
}

const PASSWORD_FILE =
  'file that contains only the PostgreSQL password, for --from and --to if the URL has no password';
const SOURCE = '--from';
const TARGET = '--to';

export function copyCommand(): Command {
  return new Command('copy')
    .description(
      'copy a store, with its tokens and all revisions, to SQLite or PostgreSQL, and compare both stores',
    )
    .requiredOption('--from <url>', 'source: sqlite:PATH or postgres://USER@HOST:PORT/DATABASE')
    .requiredOption('--to <url>', 'target, in the same form as --from')
    .addOption(passwordFileOption(PASSWORD_FILE))
    .addHelpText('after', HELP)
    .action(copy);
}

async function copy(options: CopyOptions): Promise<void> {
  const rest = 'the copied rows are stored; run the same command again to copy the rest';
  try {
    await stoppable(stop => copyStore(options, stop), rest);
  } catch (error) {
    if (error instanceof StoreDamaged || !(error instanceof StoreUnavailable)) throw error;
    throw new Failure(`${error.message}; ${rest}`);
  }
}

async function copyStore(options: CopyOptions, stop: AbortSignal): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const open = <T extends AsyncDisposable | undefined>(flag: string, opening: () => Promise<T>): Promise<T> =>
    at(flag, async () => opened.use(await opening()));

  const sourceAddress = await at(SOURCE, async () => readDatabase({ ...options, database: options.from }));
  const targetAddress = await at(TARGET, async () => readDatabase({ ...options, database: options.to }));
  // The source first: if it cannot be read, no target is created.
  const source = await open(SOURCE, () => openReader(sourceAddress));
  const existing = await open(TARGET, () => openReader(targetAddress).catch(ifMissing));
  if (existing !== undefined) await checkDistinct(source, existing);
  const writer = await open(TARGET, () => openCopyTarget(targetAddress));
  const target = existing ?? (await open(TARGET, () => openReader(targetAddress)));
  const damaged: DamagedCounts = { [SOURCE]: 0, [TARGET]: 0 };
  const total = (await source.size().catch(() => undefined))?.revisions;
  const sides = { source: { name: SOURCE, reader: source }, target: { name: TARGET, reader: target } };
  const pass = async <T>(title: string, work: (pass: CopyPass) => Promise<T>): Promise<T> => {
    using progress = new CountedProgress(title, 'revisions', total);
    const onDamaged = (side: CopySide, each: Damaged): void => {
      damaged[side.name as keyof DamagedCounts]++;
      reportDamage(each, `${side.name}: `);
    };
    return await work({ ...sides, stop, onRead: progress.add, onDamaged });
  };

  await pass('checking', checkTarget);
  rejectDamagedTarget(damaged);
  const startMs = performance.now();
  const copied = await pass('copying', each => copyMissing(each, writer));
  const elapsedMs = performance.now() - startMs;
  const rate = formatCount(perSecond(copied.revisions, elapsedMs));
  console.log(`copied ${counted(copied)} in ${(elapsedMs / 1000).toFixed(1)} s (${rate}/s)`);
  report(await pass('comparing', compareStores), damaged);
}

type DamagedCounts = Record<typeof SOURCE | typeof TARGET, number>;

/** @throws {Failure} if the target is damaged: its rows are never overwritten */
function rejectDamagedTarget({ [TARGET]: count }: DamagedCounts): void {
  if (count === 0) return;
  throw new Failure(
    `the target has ${amount(count, 'damaged revision')}; check its disk, and copy to a new store`,
  );
}

function report(compared: Awaited<ReturnType<typeof compareStores>>, damaged: DamagedCounts): void {
  const { source, target, missing } = compared;
  console.log(`source: ${summary(source)}\ntarget: ${summary(target)}`);
  const isMissing = missing.revisions + missing.tokens > 0;
  const isDamaged = damaged[SOURCE] + damaged[TARGET] > 0;
  const isEqual = !isMissing && !isDamaged && summary(source) === summary(target);
  console.log(isEqual ? 'equal' : 'not equal');
  if (isEqual) return;
  rejectDamagedTarget(damaged);
  if (isMissing)
    throw new Failure(
      `the source has ${counted(missing)} that were stored after the copy; stop the service that uses the source, then run the same command again to copy the rest`,
    );
  throw new Failure(
    isDamaged
      ? `the source has ${amount(damaged[SOURCE], 'damaged revision')}, not copied; of these plants the target has an older revision or none, so do not serve it`
      : 'the two stores differ, which is a bug; do not use the target, and report this',
  );
}

function summary({ revisions, plants, tokens, digest }: StoreSummary): string {
  return `${counted({ revisions, tokens })}, ${amount(plants, 'plant')}, sha256:${digest}`;
}

function counted({ revisions, tokens }: CopyCount): string {
  return `${amount(revisions, 'revision')} and ${amount(tokens, 'token')}`;
}

function ifMissing(error: unknown): undefined {
  if (!(error instanceof StoreMissing)) throw error;
}

/** Compares the identities of the databases: two different addresses may name one store. */
async function checkDistinct(source: PlantReader, target: PlantReader): Promise<void> {
  const identity = await source.identity();
  if (identity === undefined || identity !== (await target.identity())) return;
  throw new Failure('--from and --to name the same store; give another target with --to');
}

/** Puts the flag of the address before an error message, since the store does not know the flag. */
async function at<T>(flag: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof StoreRejected || error instanceof Failure)) throw error;
    const message = `${flag}: ${error.message.replaceAll('--database', flag)}`;
    throw new Failure(message, error instanceof Failure ? error.exitCode : 1);
  }
}
