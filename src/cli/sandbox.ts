import { Command } from 'commander';
import { DEFAULT_SANDBOX_PATH } from '../engines/sqlite/default-paths.ts';
import { preferencesOf } from '../extras/sandbox/preferences.ts';
import { reportOf } from '../extras/sandbox/report.ts';
import { sandboxOf } from '../extras/sandbox/sandbox.ts';
import { type SandboxFiles, sandboxFilesOf } from '../extras/sandbox/sandbox-files.ts';
import { databaseOption, readDatabase } from './options/database-option.ts';
import { addServeOptions, type ServeOptions } from './options/serve-options.ts';
import { setting } from './options/setting.ts';
import { alignedColumns } from './output/aligned-columns.ts';
import { Failure } from './output/failure.ts';
import { serve } from './serve.ts';

const DEFAULT_URL = `sqlite:${DEFAULT_SANDBOX_PATH}`;
const PREFER = 'faults for requests that ask for none, such as "lose=response, times=2"';

export function sandboxCommand(): Command {
  // `report` has its own `--database`, so the options of `sandbox` stand before it.
  const report = new Command('report')
    .description('print what clients did in each case that they asked for')
    .addOption(databaseOption('the store of the sandbox: sqlite:PATH', DEFAULT_URL))
    .action(options => {
      const rows = reportOf(sandboxFiles(options).requests.read());
      console.log(alignedColumns(rows.map(row => row.join('\t')).join('\n')));
    });
  return addServeOptions(new Command('sandbox'), DEFAULT_URL)
    .description('run a service that fails on request, to test clients (docs/sandbox.md)')
    .addOption(setting('--prefer <text>', PREFER))
    .enablePositionalOptions()
    .addCommand(report)
    .action(async (options: ServeOptions & { prefer?: string }, command: Command) => {
      await serve(options, command, sandboxOf(sandboxFiles(options, true), checkPrefer(options.prefer)));
    });
}

/** @throws {Failure} if a part of the text would be ignored */
export function checkPrefer(prefer = ''): string {
  const partsOf = (text: string): string[] => text.replaceAll(' ', '').split(',');
  const applied = partsOf(preferencesOf(prefer).text);
  const ignored = partsOf(prefer).find(part => !applied.includes(part));
  if (ignored === undefined) return prefer;
  const advice = 'docs/sandbox.md lists what is, such as "code=503, times=2"';
  throw new Failure(`"${ignored}" in --prefer is not understood; ${advice}`, 2);
}

/** The files beside the store of a sandbox. @throws {Failure} if it is another store */
export function sandboxFiles(options: { database: string }, mayBeNew = false): SandboxFiles {
  const database = readDatabase(options);
  if (database.engine !== 'sqlite') throw new Failure('a sandbox has an SQLite store: sqlite:PATH', 2);
  const files = sandboxFilesOf(database.path);
  if (files.isMarked ?? mayBeNew) return files;
  throw new Failure(`${database.path} is not the store of a sandbox; name another one with --database`);
}
