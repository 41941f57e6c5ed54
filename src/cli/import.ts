import { Command } from 'commander';
import { Failure } from './failure.ts';
import { type ImportRun, type ImportSettings, importFiles } from './import/import-run.ts';
import { IN_FLIGHT_DEFAULT, IN_FLIGHT_MAX } from './import/limits.ts';
import { STANDARD_INPUT } from './import/plant-file.ts';
import { Interruption, stoppable } from './interruption.ts';
import { amount } from './progress-display.ts';
import { addServiceOptions, readServiceAddress } from './service-options.ts';
import { countUpTo } from './setting.ts';

const HELP = `
FILE is CSV with the columns id, name and perhaps tag, or JSON Lines, or a JSON array; any of them in UTF-8, also
packed with gzip; - is standard input. An empty CSV field is an absent tag, "" is an empty one.

What the service refuses goes to a file in the same columns with row, error and message added, so that it can be
mended and imported again. Running an import again is harmless: what is the latest revision already stays as it is,
and what is not becomes a further revision.

Example:
  $ npx plant-store import --token-file token.txt plants.csv more-plants.jsonl.gz`;

export function importCommand(): Command {
  const command = new Command('import')
    .description('send the plants of CSV and JSON files to a running service')
    .argument('<FILE...>', 'files to import, in this order; - is standard input');
  return addServiceOptions(command)
    .option(
      '--rejects <FILE>',
      'where rejected rows go (default: FILE.rejects.csv or FILE.rejects.jsonl, here)',
    )
    .option(
      '--in-flight <N>',
      `plants sent and not yet answered, 1 to ${IN_FLIGHT_MAX}`,
      countUpTo(IN_FLIGHT_MAX),
      IN_FLIGHT_DEFAULT,
    )
    .addHelpText('after', HELP)
    .action(runImport);
}

async function runImport(
  files: string[],
  { rejects, inFlight }: { rejects?: string; inFlight: number },
  command: Command,
): Promise<void> {
  const settings = { files, service: readServiceAddress(command), rejects, inFlightMax: inFlight };
  checkFileNames(settings);
  process.exitCode = report(await stoppable(stop => importFiles(settings, stop)));
}

function checkFileNames({ files, rejects }: ImportSettings): void {
  if (rejects !== undefined && files.length > 1) {
    throw new Failure('--rejects names one file, so give one input FILE with it, or leave it out', 2);
  }
  if (files.indexOf(STANDARD_INPUT) !== files.lastIndexOf(STANDARD_INPUT)) {
    throw new Failure('standard input can be read only once, so give - only once', 2);
  }
}

/**
 * Says what was done, and chooses the exit code.
 *
 * @throws the cause, if the import failed
 */
function report({ progress, rejectsFiles, cause }: ImportRun): number {
  const { rows, rejected } = progress;
  if (cause === undefined || rows > 0) console.log(progress.summary());
  if (rejected > 0) {
    const files = rejectsFiles.join(' ');
    console.log(
      `${amount(rejected, 'rejected row')} ${rejected === 1 ? 'is' : 'are'} in ${files}, with the reasons; ` +
        `mend and import again: npx plant-store import ${files}`,
    );
  }
  if (cause instanceof Interruption) {
    console.error('plant-store: stopped; what was stored is kept, and running the import again is harmless');
    return cause.exitCode;
  }
  if (cause !== undefined) throw cause;
  return rejected === 0 ? 0 : 1;
}
