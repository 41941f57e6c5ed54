import { Command } from 'commander';
import { databaseOption, passwordFileOption } from '../../src/cli/shared/database-option.ts';
import { Failure } from '../../src/cli/shared/failure.ts';
import { stoppable } from '../../src/cli/shared/interruption.ts';
import { checkNewFile } from '../../src/cli/shared/new-file.ts';
import {
  addServiceOptions,
  givenServiceOptions,
  readServiceAddress,
} from '../../src/cli/shared/service-options.ts';
import { countUpTo } from '../../src/cli/shared/setting.ts';
import type { StoredPlant } from '../../src/client/plant-store.ts';
import { dryRun } from './dry-run.ts';
import { addFormOptions, addIdOptions, type IdOptions, idRuleOf, rejectsOptions } from './file-options.ts';
import { report } from './import-report.ts';
import { importFiles } from './import-run.ts';
import type { IdRule } from './rows/id-maker.ts';
import type { FileForm } from './rows/plant-row.ts';
import { findServiceStore, openComparedStore } from './service-store.ts';
import { STANDARD_INPUT } from './text/file-bytes.ts';

/** With fewer, import and service wait for each other: 64 reach three quarters of the rate. */
const IN_FLIGHT_DEFAULT = 256;
export const IN_FLIGHT_MAX = 1024;

const HELP = `
FILE is CSV, JSON Lines, a JSON array, an object with one list, or GeoJSON, in
UTF-8 or --encoding. It can be compressed with gzip. CSV has commas, semicolons
or tabs, and needs the columns id and name; tag is optional. In the column tag,
an empty field means that the plant has no tag, and "" means an empty tag.

A list without ids: with --id-from, the same text always gets the same id, so
you can import the list again. A changed text makes a new plant. With
--number-from, rows are numbered; keep the file of --ids-file, which is a list
with these numbers. --columns id= ignores a column id.

The command writes rejected rows to a rejects file, with four more columns:
"line" and "row" (its numbers), "error" and "message". The error is a number of
the API, or says what is wrong with the form: quotes, fields or encoding. Correct
these rows, then import the rejects file, without --columns, --delimiter,
--quotes, --header-row and --encoding; with --id-from, give it and --columns
again. A row with too few fields or wrong quotes is rejected again until you fill
one of the missing fields or clear its error. A row in another encoding has
U+FFFD for each wrong byte, and is rejected again until you replace it.

An import replaces nothing: a row whose id is stored with other content goes to
the rejects file. With --replace, it becomes the next revision, also if it is
older. No revision is ever lost, and the last lines say how to undo this. You can
run an import again: a plant that equals the latest revision changes nothing.

A dry run says what the import would do. It compares with the store, if this
machine can read it. A store without the token is that of another service, so it
is compared only if --database names it. The dry run does not know the options of
the service.

Examples:
  $ npx plant-store import --token-file token.txt plants.csv more-plants.jsonl.gz
  $ npx plant-store import --token-file token.txt --id-from ACCESSION --ids-file ids.csv plants.csv`;

export function importCommand(): Command {
  const command = new Command('import')
    .description('send the plants of CSV and JSON files to a running service')
    .argument('<FILE...>', 'files, imported in this order; - is standard input');
  addServiceOptions(command)
    .option('--dry-run', 'send nothing, and print what the import would do; needs no service and no token')
    .option('--replace', 'replace other content that is stored under the ids of the rows')
    .option(
      '--show-replaced <FILE>',
      'with --dry-run: new CSV file for all rows with other content than is stored',
    )
    .option(
      '--rejects <FILE>',
      'file for rejected rows (default: FILE.rejects.csv or FILE.rejects.jsonl in the current folder)',
    )
    .option(
      '--in-flight <N>',
      `how many plants can wait for a response at the same time, 1 to ${IN_FLIGHT_MAX}`,
      countUpTo(IN_FLIGHT_MAX),
      IN_FLIGHT_DEFAULT,
    )
    .addHelpText('after', HELP)
    .action(runImport);
  addFormOptions(command)
    .addOption(databaseOption('with --dry-run: the store to compare with'))
    .addOption(passwordFileOption());
  return addIdOptions(command);
}

interface ImportOptions extends FileForm, IdOptions {
  dryRun?: true;
  replace?: true;
  showReplaced?: string;
  rejects?: string;
  inFlight: number;
}

async function runImport(files: string[], options: ImportOptions, command: Command): Promise<void> {
  const { rejects, idsFile, inFlight, replace: replaces = false } = options;
  checkFileNames(files, rejects);
  const idRule = idRuleOf(options);
  if (options.dryRun) return await runDryRun(files, options, idRule, command);
  if (isDatabaseGiven(command) || options.showReplaced !== undefined)
    throw new Failure('--database and --show-replaced are for --dry-run; import sends plants to --url', 2);
  const service = readServiceAddress(command);
  const run = { files, form: options, idRule, idsFile, service, replaces, rejects };
  const next = {
    url: service.url,
    service: givenServiceOptions(command),
    textColumns: idRule?.kind === 'texts' ? idRule.columns : undefined,
    made: rejectsOptions(idRule, options),
    findStore: (lastPlant: StoredPlant | undefined) => findServiceStore(command, service.token, lastPlant),
  };
  process.exitCode = await stoppable(
    async stop => await report(await importFiles({ ...run, inFlightMax: inFlight }, stop), next),
    'nothing was sent',
  );
}

async function runDryRun(
  files: string[],
  options: ImportOptions,
  idRule: IdRule | undefined,
  command: Command,
): Promise<void> {
  const { showReplaced, replace: replaces = false } = options;
  if (showReplaced !== undefined) checkNewFile(showReplaced);
  const isNamed = isDatabaseGiven(command);
  const isRequired = isNamed || showReplaced !== undefined;
  const store = await openComparedStore(command, { isNamed, isRequired });
  await using _ = store.kind === 'store' ? store.reader : undefined;
  process.exitCode = await stoppable(
    stop => dryRun({ files, reading: { form: options, stop }, idRule, store, replaces, showReplaced }),
    'nothing was sent',
  );
}

/** Whether the store is named by an option, and not by its variable. */
function isDatabaseGiven(command: Command): boolean {
  return command.getOptionValueSource('database') === 'cli';
}

function checkFileNames(files: string[], rejects: string | undefined): void {
  if (rejects !== undefined && files.length > 1)
    throw new Failure('--rejects works with only one input FILE; give one FILE, or omit --rejects', 2);
  if (rejects === '-') throw new Failure('--rejects needs the name of a file; it cannot be -', 2);
  if (files.indexOf(STANDARD_INPUT) !== files.lastIndexOf(STANDARD_INPUT))
    throw new Failure('standard input can be read only once; give - only once', 2);
}
