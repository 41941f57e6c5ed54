import { Command, InvalidArgumentError, Option } from 'commander';
import { Interruption, stoppable } from '../interruption.ts';
import { addServiceOptions, readServiceAddress } from '../options/service-options.ts';
import { countUpTo } from '../options/setting.ts';
import { Failure } from '../output/failure.ts';
import { amount } from '../output/number-text.ts';
import { visible } from '../output/visible-text.ts';
import type { CsvForm } from './csv-header.ts';
import { dryRun } from './dry-run.ts';
import { STANDARD_INPUT } from './file-bytes.ts';
import { addIdOptions, type IdOptions, idRuleOf, rejectsOptions } from './id-options.ts';
import { type ImportResult, importFiles } from './import-run.ts';
import { SAFE_TO_REPEAT } from './plant-row.ts';

/** With fewer, import and service wait for each other: 64 reach three quarters of the rate. */
const IN_FLIGHT_DEFAULT = 256;
export const IN_FLIGHT_MAX = 1024;
const HEADER_ROW_MAX = 1_000_000;

const HELP = `
FILE is CSV, JSON Lines, a JSON array, an object with one list, or GeoJSON, in
UTF-8 or --encoding. It can be compressed with gzip. CSV has commas, semicolons
or tabs, and needs the columns id and name; tag is optional. In the column tag,
an empty field means that the plant has no tag, and "" means an empty tag.

A list without ids: with --id-from, the same text always gets the same id, so
you can import the list again. With --number-from, rows are numbered; keep the
file of --ids-file, which is a list with these numbers. --columns id= ignores a
column id.

The command writes rejected rows to a rejects file, with four more columns:
"line" and "row" (its numbers), "error" and "message". Correct these rows, then
import the rejects file, without --columns, --delimiter, --quotes, --header-row
and --encoding; with --id-from, give it and --columns again. A row with too few
fields is rejected again until you fill one of the missing fields or delete its
message. A row that was not UTF-8 has U+FFFD for each wrong byte, and is
rejected again until you replace it.

You can run an import again. A plant that equals the latest revision of its id
changes nothing. Other content becomes the next revision, also if it is older.
No revision is ever lost.

Examples:
  $ npx plant-store import --token-file token.txt plants.csv more-plants.jsonl.gz
  $ npx plant-store import --token-file token.txt --id-from ACCESSION --ids-file ids.csv plants.csv`;

export function importCommand(): Command {
  const command = new Command('import')
    .description('send the plants of CSV and JSON files to a running service')
    .argument('<FILE...>', 'files, imported in this order; - is standard input');
  addServiceOptions(command)
    .option('--dry-run', 'send nothing, and print what to correct; needs no service and no token')
    .option(
      '--columns <LIST>',
      'names of CSV columns, such as id=ACCESSION; tag= for no tag, id= to ignore ids',
      parseColumns,
    )
    .option('--delimiter <CHAR>', 'delimiter of CSV (default: comma, semicolon or tab)', parseDelimiter)
    .addOption(
      new Option(
        '--quotes <on|off>',
        'whether quotes enclose fields of CSV; off: they are text (default: on; with tabs, off if a line does not close a quote)',
      ).choices(['on', 'off']),
    )
    .option(
      '--header-row <N>',
      'line of the header of CSV, if it has title rows above it (default: the first line with text)',
      countUpTo(HEADER_ROW_MAX),
    )
    .option(
      '--encoding <NAME>',
      'encoding of the files, such as windows-1250 (default: UTF-8, or as a byte order mark says)',
      parseEncoding,
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
  return addIdOptions(command);
}

function parseColumns(text: string): CsvForm['columns'] {
  const columns = text.split(/,(?=(?:id|name|tag)=)/).map(each => /^(id|name|tag)=(.*)$/.exec(each));
  if (!columns.includes(null)) return Object.fromEntries(columns.map(match => match!.slice(1)));
  throw new InvalidArgumentError('Write MEMBER=COLUMN for id, name or tag, such as id=ACCESSION,name=Taxon.');
}

function parseDelimiter(text: string): string {
  if (/^(?:tab|[^"\r\n])$/u.test(text)) return text.replace('tab', '\t');
  throw new InvalidArgumentError('Give one character, or the word tab.');
}

/** @returns the name of the encoding by the Encoding Standard, section 4.2 */
function parseEncoding(text: string): string {
  try {
    return new TextDecoder(text).encoding;
  } catch {
    throw new InvalidArgumentError(
      'Give a name of the Encoding Standard (https://encoding.spec.whatwg.org/#names-and-labels), such as windows-1252 or utf-16le.',
    );
  }
}

interface ImportOptions extends CsvForm, IdOptions {
  dryRun?: true;
  encoding?: string;
  rejects?: string;
  inFlight: number;
}

async function runImport(files: string[], options: ImportOptions, command: Command): Promise<void> {
  const { rejects, idsFile, inFlight, encoding, dryRun: sendsNothing } = options;
  checkFileNames(files, rejects);
  const idRule = idRuleOf(options);
  const service = sendsNothing ? undefined : readServiceAddress(command);
  const work = async (stop: AbortSignal): Promise<number> => {
    if (service === undefined) return await dryRun(files, idRule, { form: options, encoding, stop });
    const settings = {
      files,
      form: options,
      encoding,
      idRule,
      idsFile,
      service,
      rejects,
      inFlightMax: inFlight,
    };
    return report(await importFiles(settings, stop), rejectsOptions(idRule, options));
  };
  process.exitCode = await stoppable(work, 'nothing was sent');
}

function checkFileNames(files: string[], rejects: string | undefined): void {
  if (rejects !== undefined && files.length > 1)
    throw new Failure('--rejects works with only one input FILE; give one FILE, or omit --rejects', 2);
  if (rejects === '-') throw new Failure('--rejects needs the name of a file; it cannot be -', 2);
  if (files.indexOf(STANDARD_INPUT) !== files.lastIndexOf(STANDARD_INPUT))
    throw new Failure('standard input can be read only once; give - only once', 2);
}

/**
 * Prints the result.
 *
 * @param again options with which the rejects files are imported
 * @returns the exit code
 * @throws the reason if the import ended early
 */
function report(
  { progress, rejectsFiles, idsSummary, unsent, cause }: ImportResult,
  again: string[],
): number {
  const { done, rejected } = progress;
  if (cause === undefined || done > 0) console.log(progress.summary());
  if (idsSummary !== undefined) console.log(idsSummary);
  if (rejected > 0) {
    const quoted = (word: string) =>
      /^[\w./=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
    const files = visible(rejectsFiles.map(quoted).join(' '));
    const words = visible([...again, ...rejectsFiles].map(quoted).join(' '));
    console.log(
      `${amount(rejected, 'rejected row')} ${rejected === 1 ? 'is' : 'are'} in ${files}, with the reasons; ` +
        (cause === undefined
          ? `correct and import again: npx plant-store import ${words}`
          : 'not all rows were sent, so correct and import the original'),
    );
  }
  if (cause !== undefined && unsent.length > 0) console.error(`not sent: ${visible(unsent.join(' '))}`);
  if (cause instanceof Interruption) {
    console.error(`plant-store: stopped; confirmed plants are stored, and ${SAFE_TO_REPEAT}`);
    return cause.exitCode;
  }
  if (cause !== undefined) throw cause;
  return rejected === 0 ? 0 : 1;
}
