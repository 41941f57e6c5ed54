import { existsSync, readFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { Command } from 'commander';
import { databaseAddressOf } from '../store/database-url.ts';
import { openReader } from '../store/open-store.ts';
import { StoreRejected } from '../store/plant-store.ts';
import { parseSeal, type Seal, sealLine, sealText } from '../store/seal.ts';
import { settledTime, type Verification, verifyRevisions } from '../store/verification.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './database-option.ts';
import { Failure } from './failure.ts';
import { noteRun } from './note-run.ts';
import { amount, CountedProgress } from './progress-display.ts';
import { checkNewSeal, SEAL_SUFFIX, writeSeal } from './seal-file.ts';

const HELP = `
The command checks every revision and prints a line, the seal. Keep the line on
paper or on another machine. A service may use the store meanwhile.

With --against, the command says whether the store still holds every revision of
an earlier seal, unchanged. It ignores revisions that were added since. With a file
that --seal or backup wrote, it also shows where the first difference is.

Exit code 1 means that the store is damaged, or does not hold what the seal says.
Then no seal is printed or written.

Examples:
  $ npx plant-store verify --seal seals/2026-11-22.seal
  $ npx plant-store verify --against seals/2026-11-22.seal`;

const STRUCTURE_NOT_CHECKED =
  'WARNING: pages and indexes were not checked: the database lacks the extension amcheck, this user may not use it, or the plants are on Citus';

interface VerifyOptions extends DatabaseOptions {
  against?: string;
  seal?: string;
}

export function verifyCommand(): Command {
  return addDatabaseOptions(new Command('verify'))
    .description('check every revision, and print a line that later proves that none is missing')
    .option('--against <seal>', 'an earlier line, or the file that contains it')
    .option('--seal <file>', 'also write the line to this new file, with digests of parts of the store')
    .addHelpText('after', HELP)
    .action(verify);
}

async function verify(options: VerifyOptions): Promise<void> {
  const database = readDatabase(options);
  const earlier = options.against === undefined ? undefined : readSeal(options.against);
  if (options.seal !== undefined) checkNewSeal(options.seal);
  // The service has priority.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const { structure, seal, faults, difference } = await check(database, earlier);
  if (difference !== undefined) {
    const then = new Date(earlier!.until).toISOString();
    faults.push(`the store does not hold exactly what it held on ${then}: ${difference}`);
  }
  for (const fault of faults) report(fault);
  const isSound = faults.length + structure.length === 0;
  if (isSound && seal !== undefined) {
    console.log(sealLine(seal));
    if (options.seal !== undefined) writeSeal(options.seal, sealText(seal));
  }
  const counts = seal && `${amount(seal.plants, 'plant')} and ${amount(seal.revisions, 'revision')}, `;
  const found = faults.length === 0 ? 'no fault found' : `FAULTS FOUND: ${faults[0]}`;
  // A write to a damaged file could damage more, and a backup must stay as it is.
  if (structure.length === 0 && !isBackup(database)) {
    await noteRun(database, 'verify', `${counts ?? ''}${found}`);
  }
  if (earlier !== undefined && difference === undefined) {
    console.error(`the store still holds all ${amount(earlier.revisions, 'revision')} of that seal`);
  }
  if (isSound) return;
  process.exitCode = 1;
  // The seal exists if the revisions have no fault.
  const isOnlyOther = structure.length === 0 && seal !== undefined;
  const section = isOnlyOther ? 'Seals' : 'Damaged stores';
  console.error(
    `FAULTS FOUND, so no seal was made; for what to do, see docs/operate/backup.md, "${section}"`,
  );
}

async function check(
  database: string,
  earlier: Seal | undefined,
): Promise<Verification & { structure: string[] }> {
  await using reader = await openReader(database);
  const structure = await reader.structureFaults();
  if (structure === undefined) console.error(STRUCTURE_NOT_CHECKED);
  // Before the reading, which may fail at this place.
  for (const fault of structure ?? []) report(fault);
  const until = await settledTime(reader);
  const { revisions: total } = await reader.size();
  using progress = new CountedProgress('verifying', 'revisions', total);
  const verification = await verifyRevisions(reader, until, earlier, revisions => {
    progress.done += revisions;
  });
  return { ...verification, structure: structure ?? [] };
}

function report(fault: string): void {
  console.error(`plant-store: ${fault}`);
}

/** @param text a line, or the name of a file */
function readSeal(text: string): Seal {
  try {
    return parseSeal(/^\s*plant-store\s+seal\s/.test(text) ? text : readFileSync(text, 'utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = error instanceof StoreRejected ? error.message : `the file ${text} cannot be read (${code})`;
    throw new Failure(`--against: ${why}`, 2);
  }
}

function isBackup(database: string): boolean {
  const address = databaseAddressOf(database);
  return address.engine === 'sqlite' && existsSync(`${address.path}${SEAL_SUFFIX}`);
}
