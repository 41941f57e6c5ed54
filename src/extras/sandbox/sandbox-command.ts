import { Command } from 'commander';
import type { Extra } from '../../cli/extra.ts';
import { addServeOptions, type ServeOptions } from '../../cli/options/serve-options.ts';
import { serve } from '../../cli/serve.ts';
import { databaseOption, readDatabase } from '../../cli/shared/database-option.ts';
import { Failure } from '../../cli/shared/failure.ts';
import { setting } from '../../cli/shared/setting.ts';
import type { DatabaseAddress } from '../../engines/openers/database-url.ts';
import { openerOf } from '../../engines/openers/open-store.ts';
import { amount } from '../../formats/number-text.ts';
import { sandboxExtra } from './failing-operation.ts';
import { judgedPlants } from './judgement.ts';
import { preferencesOf } from './preferences.ts';
import { jsonReport, textReport } from './report.ts';
import { type SandboxFiles, sandboxFilesOf } from './sandbox-files.ts';

const DEFAULT_URL = 'sqlite:./sandbox/plant-store.db';
const PREFER = 'faults for requests that ask for none, such as "lose=response, times=2"';
const HELP = `
A request asks for faults in the header Prefer. If you cannot change the headers
of your client, create a token for each case, and run the client once with each:
  $ npx plant-store token create busy --prefer 'code=503, times=1' --database ${DEFAULT_URL}
  $ npx plant-store token create cut --prefer 'lose=half, times=1' --database ${DEFAULT_URL}

When the client has ended, \`npx plant-store sandbox report\` judges each case.`;

/** @param extras add their options, as to `serve` */
export function sandboxCommand(extras: readonly Extra[]): Command {
  // `report` has its own `--database`, so the options of `sandbox` stand before it.
  const report = new Command('report')
    .description('judge how clients behaved in each case that they asked for')
    .addOption(databaseOption('the store of the sandbox: sqlite:PATH', DEFAULT_URL))
    .option('--json', 'print JSON Lines')
    .option(
      '--reset',
      'begin again without a report: forget all requests, and let faults with times= happen again',
    )
    .action(printReport);
  return addServeOptions(new Command('sandbox'), extras, DEFAULT_URL)
    .description('run a service that fails on request, to test clients (docs/sandbox.md)')
    .addOption(setting('--prefer <text>', PREFER))
    .addHelpText('after', HELP)
    .enablePositionalOptions()
    .addCommand(report)
    .action(async (options: ServeOptions & { prefer?: string }, command: Command) => {
      const prefer = validPrefer(options.prefer);
      const database = readDatabase(options, DEFAULT_URL);
      const attach = sandboxExtra(sandboxFiles(database, true), prefer);
      await serve({ database, options, command, extras, attach });
    });
}

/** @throws {Failure} if clients sent nothing or behaved badly */
async function printReport(options: { database: string; json?: true; reset?: true }): Promise<void> {
  const database = readDatabase(options);
  const { requests } = sandboxFiles(database);
  if (options.reset) {
    const forgotten = requests.read().filter(({ kind }) => kind !== 'response').length;
    requests.remove();
    console.error(`forgot ${amount(forgotten, 'request')}`);
    return;
  }
  const plants = judgedPlants(requests.read());
  if (plants.length === 0) throw new Failure('the sandbox has recorded no plant; send it some');
  await using reader = await openerOf(database).openReader();
  const labels = new Map((await reader.tokens()).map(({ hash, label }) => [hash, label]));
  const print = options.json ? jsonReport : textReport;
  process.stdout.write(print(plants, hash => labels.get(hash) ?? hash));
  const bad = plants.filter(({ verdicts }) => !verdicts.includes('ok')).length;
  if (bad > 0)
    throw new Failure(
      `${bad} of ${amount(plants.length, 'plant')} went wrong, where each new id counts as a plant; see docs/sandbox.md`,
    );
}

/** @throws {Failure} if a part of the text would be ignored */
export function validPrefer(prefer = ''): string {
  const partsOf = (text: string): string[] => text.replaceAll(' ', '').split(',');
  const applied = partsOf(preferencesOf(prefer).text);
  const ignored = partsOf(prefer).find(part => !applied.includes(part));
  if (ignored === undefined) return prefer;
  const advice = 'docs/sandbox.md lists what is, such as "code=503, times=2"';
  throw new Failure(`"${ignored}" in --prefer is not understood; ${advice}`, 2);
}

/** The files beside the store of a sandbox. @throws {Failure} if it is another store */
export function sandboxFiles(database: DatabaseAddress, mayBeNew = false): SandboxFiles {
  if (database.engine !== 'sqlite') throw new Failure('a sandbox has an SQLite store: sqlite:PATH', 2);
  const files = sandboxFilesOf(database.path);
  switch (files.kind) {
    case 'sandbox':
      return files;
    case 'missing':
      if (mayBeNew) return files;
      throw new Failure(`there is no sandbox at ${database.path}; start one with: npx plant-store sandbox`);
    case 'other':
      throw new Failure(`${database.path} is not the store of a sandbox; name another one with --database`);
  }
}
