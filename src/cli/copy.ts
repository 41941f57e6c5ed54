import { Command, InvalidArgumentError } from 'commander';
import { StoreDamaged, StoreMissing, StoreRejected, StoreUnavailable } from '../core/commit/store-errors.ts';
import { openerOf } from '../engines/openers/open-store.ts';
import type { StoreOpener } from '../engines/openers/store-opener.ts';
import type { PlantReader } from '../engines/plant-reader.ts';
import { amount, formatCount, perSecond } from '../formats/number-text.ts';
import type { Damaged } from '../proof/checked-revisions.ts';
import { sealLine } from '../proof/seal.ts';
import {
  type CopyCount,
  type CopySide,
  checkTarget,
  compareStores,
  copyMissing,
  countLeftOut,
  type SourcePass,
  type StoreComparison,
  type StoreSummary,
} from '../proof/store-copy.ts';
import { reportDamage } from './output/damage.ts';
import { passwordFileOption, readDatabase } from './shared/database-option.ts';
import { Failure } from './shared/failure.ts';
import { readTypedId } from './shared/id-text.ts';
import { stoppable } from './shared/interruption.ts';
import { CountedProgress } from './shared/progress-display.ts';
import { rejectionText } from './shared/rejection-text.ts';
import { readTextFile } from './shared/setting.ts';

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

With --except, the copy has no revision of the plants in the file. The comparison
covers all other plants. If you run the command again, give the same file: without
it, the plants would be copied. Stop the service first: a plant that it confirms
after the copy is not in the target. Seals of the source do not fit such a copy, so
the last line is the seal of the target.

Example:
  $ npx plant-store copy --from sqlite:./data/plant-store.db --to postgres://plant_owner@db.example/plants`;

interface CopyOptions {
  from: string;
  to: string;
  databasePasswordFile?: string;
  except?: IdLines;
}

/** The ids of a file, each with the number of the last line that has it. */
type IdLines = Map<bigint, number>;

const PASSWORD_FILE =
  'file that contains only the PostgreSQL password, for --from and --to if the URL has no password';
const UNKNOWN_IDS_SHOWN_MAX = 20;
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
    .option('--except <file>', 'leave out the plants whose ids the file has, one in each line', readIdFile)
    .addHelpText('after', HELP)
    .action(copy);
}

/** Reads one id from each line. A comment begins with `#`. */
function readIdFile(file: string): IdLines {
  const ids: IdLines = new Map();
  const lines = readTextFile(file, `the file of --except, ${file},`, 'ids').split('\n');
  for (const [index, line] of lines.entries()) {
    const digits = line.split('#', 1)[0]!.trim();
    if (digits === '') continue;
    const reading = readTypedId(digits);
    if (reading.kind === 'fault') throw new InvalidArgumentError(`Line ${index + 1}: ${reading.fault}.`);
    ids.set(reading.id, index + 1);
  }
  if (ids.size === 0) throw new InvalidArgumentError('The file has no id.');
  return ids;
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
    withFlag(flag, async () => opened.use(await opening()));

  const openerAt = (flag: string, database: string): Promise<StoreOpener> =>
    withFlag(flag, async () => openerOf(readDatabase({ ...options, database })));
  const sourceStore = await openerAt(SOURCE, options.from);
  const targetStore = await openerAt(TARGET, options.to);
  // The source is opened first. If it cannot be read, no target is created.
  const source = await open(SOURCE, () => sourceStore.openReader());
  const existing = await open(TARGET, () => targetStore.openReader().catch(ifMissing));
  if (existing !== undefined) await checkDistinct(source, existing);
  const damaged: DamagedCounts = { source: 0, target: 0 };
  const leftOut: SourcePass['leftOut'] = new Map();
  const total = (await source.size().catch(() => undefined))?.revisions;
  const from = { name: SOURCE, reader: source };
  const pass = async <T>(title: string, work: (pass: SourcePass) => Promise<T>): Promise<T> => {
    using progress = new CountedProgress(title, 'revisions', total);
    const onDamaged = (side: CopySide, each: Damaged): void => {
      damaged[side === from ? 'source' : 'target']++;
      reportDamage(each, `${side.name}: `);
    };
    for (const id of options.except?.keys() ?? []) leftOut.set(id, 0);
    return await work({ source: from, leftOut, stop, onRead: progress.add, onDamaged });
  };
  if (options.except !== undefined) {
    warnOfService(sourceStore, 'stop it before you copy');
    await pass('looking for the plants of --except', countLeftOut);
    rejectUnknownIds(options.except, leftOut);
  }

  const writer = await open(TARGET, () => targetStore.openCopyTarget());
  const to = { name: TARGET, reader: existing ?? (await open(TARGET, () => targetStore.openReader())) };
  await pass('checking', each => checkTarget({ ...each, target: to }));
  rejectDamagedTarget(damaged);
  const startMs = performance.now();
  const copied = await pass('copying', each => copyMissing({ ...each, target: to }, writer));
  const elapsedMs = performance.now() - startMs;
  const rate = formatCount(perSecond(copied.revisions, elapsedMs));
  console.log(`copied ${counted(copied)} in ${(elapsedMs / 1000).toFixed(1)} s (${rate}/s)`);
  const comparedAt = new Date().toISOString();
  const compared = await pass('comparing', each => compareStores({ ...each, target: to }));
  reportLeftOut(leftOut);
  report(compared, damaged, leftOut.size === 0 ? 'source' : 'source without these plants');
  if (leftOut.size === 0) return;
  console.log(`not in the target: these plants, and what was stored after ${comparedAt}`);
  warnOfService(sourceStore, 'before you use the target, stop it and run the same command again');
  console.error('no seal of the source fits the target; keep this one:');
  console.log(sealLine(compared.target));
}

/** Warns if a service uses the source, since the target lacks plants that are stored later. */
function warnOfService(source: StoreOpener, advice: string): void {
  const service = source.file?.runningService();
  if (service === undefined) return;
  console.error(
    `WARNING: ${service} uses the source, and the target lacks each plant that it confirms after this copy; ${advice}`,
  );
}

/** @throws {Failure} if the source lacks an id, since a plant with a mistyped id would be copied */
function rejectUnknownIds(except: IdLines, leftOut: SourcePass['leftOut']): void {
  const unknown = [...except].filter(([id]) => leftOut.get(id) === 0);
  if (unknown.length === 0) return;
  const shown = unknown.slice(0, UNKNOWN_IDS_SHOWN_MAX).map(([id, line]) => `${id} (line ${line})`);
  if (shown.length < unknown.length) shown.push(`${formatCount(unknown.length - shown.length)} more`);
  throw new Failure(
    `--except: the source has no plant with the id ${shown.join(', ')}; nothing was copied; correct or remove these ids`,
  );
}

function reportLeftOut(leftOut: SourcePass['leftOut']): void {
  if (leftOut.size === 0) return;
  const revisions = leftOut.values().reduce((sum, count) => sum + count, 0);
  console.log(`left out ${amount(leftOut.size, 'plant')} with ${amount(revisions, 'revision')}`);
}

/** How many damaged revisions each store has. */
interface DamagedCounts {
  source: number;
  target: number;
}

/** @throws {Failure} if the target is damaged, since a copy never overwrites rows */
function rejectDamagedTarget({ target }: DamagedCounts): void {
  if (target === 0) return;
  throw new Failure(
    `the target has ${amount(target, 'damaged revision')}; check its disk, and copy to a new store`,
  );
}

function report(compared: StoreComparison, damaged: DamagedCounts, sourceName: string): void {
  const { source, target, missing } = compared;
  console.log(`${sourceName}: ${summary(source)}\ntarget: ${summary(target)}`);
  const isMissing = missing.revisions + missing.tokens > 0;
  const isDamaged = damaged.source + damaged.target > 0;
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
      ? `the source has ${amount(damaged.source, 'damaged revision')}, not copied; of these plants the target has an older revision or none, so do not serve it`
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

/** Names the flag of the address in an error message, since the store does not know the flag. */
async function withFlag<T>(flag: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof StoreRejected) throw new Failure(`${flag}: ${rejectionText(error, flag)}`);
    if (error instanceof Failure) throw new Failure(`${flag}: ${error.message}`, error.exitCode);
    throw error;
  }
}
