import { readFileSync, writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { Command } from 'commander';
import { StoreDamaged } from '../core/commit/store-errors.ts';
import type { DatabaseAddress } from '../engines/openers/database-url.ts';
import { openerOf } from '../engines/openers/open-store.ts';
import type { PlantReader } from '../engines/plant-reader.ts';
import type { DamageRecord } from '../engines/tables/damage-record.ts';
import { amount } from '../formats/number-text.ts';
import { FAULTS_FOUND } from '../operate/health/known-damage.ts';
import {
  MalformedSeal,
  parseSeal,
  type Seal,
  type SealComparison,
  SealDigest,
  sealLine,
  sealText,
} from '../proof/seal.ts';
import { settledTime, type Verification, verifyRevisions } from '../proof/verification.ts';
import { type Finding, noteRun } from './note-run.ts';
import { reportFaults } from './output/damage.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './shared/database-option.ts';
import { Failure } from './shared/failure.ts';
import { checkNewFile, makeNewFile } from './shared/new-file.ts';
import { CountedProgress } from './shared/progress-display.ts';

const HELP = `
The command checks every revision and prints a line, the seal. Keep the line on
paper or on another machine. A service may use the store meanwhile.

With --against, the command says whether the store still holds every revision of
an earlier seal, unchanged. It ignores revisions that were added since.

Exit code 1 means that the store is damaged, or does not hold what the seal says.
Then no seal is printed or written.

Examples:
  $ npx plant-store verify --seal seals/2026-11-22.seal
  $ npx plant-store verify --against seals/2026-11-22.seal`;

const STRUCTURE_NOT_CHECKED =
  'WARNING: pages and indexes were not checked: the database lacks the extension amcheck, this user may not use it, or the plants are on Citus';

const STRUCTURE_FAULT = 'the pages, indexes or schema of the store have faults';

interface VerifyOptions extends DatabaseOptions {
  against?: string;
  seal?: string;
}

export function verifyCommand(): Command {
  return addDatabaseOptions(new Command('verify'))
    .description('check every revision, and print a line that later proves that none is missing')
    .option('--against <seal>', 'an earlier line, or the file that contains it')
    .option('--seal <file>', 'also write the line to this new file')
    .addHelpText('after', HELP)
    .action(verify);
}

async function verify(options: VerifyOptions): Promise<void> {
  const database = readDatabase(options);
  const earlier = options.against === undefined ? undefined : readSeal(options.against);
  if (options.seal !== undefined) checkNewFile(options.seal);
  // A service on this machine has priority.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const verified = await verifyStore(database, earlier);
  const { faults, structure, seal, comparison, aheadOfClock } = verified;
  const difference = earlier && comparison && differenceText(earlier, comparison);
  const all = difference === undefined ? faults : [...faults, difference];
  reportFaults([...all, ...structure.map(each => `structure: ${each}`)], aheadOfClock);
  const [fault] = all;
  const finding: Finding =
    fault === undefined ? { kind: 'sound', repaired: verified.knownDamage } : { kind: 'damaged', fault };
  const isSound = finding.kind === 'sound';
  if (isSound && seal !== undefined) {
    if (options.seal !== undefined) {
      await makeNewFile(options.seal, partial => writeFileSync(partial, sealText(seal)));
      console.error(`wrote the seal to ${options.seal}`);
    }
    console.log(sealLine(seal));
  }
  const counts = seal && `${amount(seal.plants, 'plant')} and ${amount(seal.revisions, 'revision')}`;
  // A damaged store gets the row, too. This adds no risk, since services also write to the store.
  const result = isSound ? `no fault found in ${counts}` : (counts ?? 'not all revisions were counted');
  await noteRun(database, { command: 'verify', result, finding, isCompared: earlier !== undefined });
  if (earlier !== undefined && comparison?.kind === 'fits') {
    console.error(`the store still holds all ${amount(earlier.revisions, 'revision')} of that seal`);
  }
  if (isSound) return;
  process.exitCode = 1;
  // A seal exists if no revision has a fault.
  const isOnlyOther = structure.length === 0 && seal !== undefined;
  const section = isOnlyOther ? 'Seals' : 'Damaged stores';
  console.error(`${FAULTS_FOUND}no seal was made; for what to do, see docs/operate/backup.md, "${section}"`);
}

interface VerifiedStore extends Verification {
  /** The damage that the store knew of before. */
  knownDamage: DamageRecord | undefined;
  /** The faults of pages, indexes and the schema. */
  structure: string[];
}

async function verifyStore(database: DatabaseAddress, earlier: Seal | undefined): Promise<VerifiedStore> {
  await using reader = await openerOf(database).openReader();
  // Known damage is read first, since this run may not cover damage that is found later. The page
  // with this row may be damaged, too.
  const knownDamage = await reader.knownDamage().catch(() => undefined);
  const structureFaults = await reader.structureFaults();
  if (structureFaults === undefined) console.error(STRUCTURE_NOT_CHECKED);
  const structure = structureFaults ?? [];
  try {
    const verification = await verifyReadable(reader, earlier);
    const faults = structure.length === 0 ? verification.faults : [STRUCTURE_FAULT, ...verification.faults];
    return { ...verification, faults, knownDamage, structure };
  } catch (error) {
    if (!(error instanceof StoreDamaged)) throw error;
    const faults = ['the store is damaged: not all of its revisions can be read'];
    if (earlier !== undefined) faults.push('the seal could not be compared: not all revisions can be read');
    if (!structure.includes(error.message)) structure.push(error.message);
    return { faults, seal: undefined, comparison: undefined, aheadOfClock: 0, knownDamage, structure };
  }
}

/** How the store differs from an earlier seal. @returns undefined if the seal fits */
function differenceText({ until }: Seal, comparison: SealComparison): string | undefined {
  if (comparison.kind === 'fits') return undefined;
  const { kind, counts } = comparison;
  const time = new Date(until).toISOString();
  if (kind === 'changed') return `the store does not hold exactly what it held on ${time}: ${counts}`;
  // Lost revisions are worse than a false alarm, which the next `verify` ends.
  return `the store has no intact revision from ${time}, so the newest revisions are lost, or the seal is of another store: ${counts}`;
}

/** @throws {StoreDamaged} if SQLite or PostgreSQL cannot read all revisions */
async function verifyReadable(reader: PlantReader, earlier: Seal | undefined): Promise<Verification> {
  const digest = SealDigest.until(await settledTime(reader));
  const { revisions } = await reader.size();
  using progress = new CountedProgress('verifying', 'revisions', revisions);
  return await verifyRevisions(reader, digest, earlier, progress.add);
}

/** @param text the line of a seal, or the name of its file. @throws {Failure} */
function readSeal(text: string): Seal {
  try {
    return parseSeal(/^\s*plant-store\s+seal\s/.test(text) ? text : readFileSync(text, 'utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      error instanceof MalformedSeal
        ? error.message
        : code === 'ENOENT'
          ? `there is no file ${text}; give the path of a seal, or its line in quotes`
          : `the file ${text} cannot be read (${code}); give the path of a seal, or its line in quotes`;
    throw new Failure(`--against: ${why}`, 2);
  }
}
