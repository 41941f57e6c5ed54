import { Command, CommanderError } from 'commander';
import {
  StoreDamaged,
  StoreInternalError,
  StoreRejected,
  StoreUnavailable,
} from '../core/commit/store-errors.ts';
import { VERSION } from '../version.ts';
import { BACKUP_PROCESS } from './backup/own-program.ts';
import { Interruption } from './interruption.ts';
import { unknownVariables } from './options/unknown-variables.ts';
import { Failure } from './output/failure.ts';
import { visible } from './output/visible-text.ts';

/** 128 plus SIGPIPE, as a shell reports other programs. The output is incomplete. */
const STDOUT_CLOSED_EXIT_CODE = 141;

/** Each command is loaded only when it runs: `serve` starts sooner without the code of `import`. */
export const COMMANDS: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./serve.ts')).serveCommand(),
  sandbox: async () => (await import('./sandbox.ts')).sandboxCommand(),
  console: async () => (await import('./console.ts')).consoleCommand(),
  health: async () => (await import('./health.ts')).healthCommand(),
  token: async () => (await import('./token.ts')).tokenCommand(),
  add: async () => (await import('./add.ts')).addCommand(),
  import: async () => (await import('./import/import.ts')).importCommand(),
  list: async () => (await import('./list.ts')).listCommand(),
  show: async () => (await import('./show.ts')).showCommand(),
  export: async () => (await import('./export.ts')).exportCommand(),
  stats: async () => (await import('./stats.ts')).statsCommand(),
  copy: async () => (await import('./copy.ts')).copyCommand(),
  verify: async () => (await import('./verify.ts')).verifyCommand(),
  backup: async () => (await import('./backup/backup.ts')).backupCommand(),
  check: async () => (await import('./check/check.ts')).checkCommand(),
  openapi: async () => (await import('./openapi.ts')).openApiCommand(),
};

/** Results go to stdout, messages to stderr. Exit codes: 0 success, 1 failure, 2 usage error. */
export async function main(argv: string[]): Promise<void> {
  if (argv[2] === BACKUP_PROCESS && process.send !== undefined) {
    const { runBackupProcess } = await import('./backup/backup-process.ts');
    return await runBackupProcess(argv[3]!, argv[4]!);
  }
  process.stdout.on('error', endWithReader);
  try {
    const args = argv[2] === 'version' ? ['--version'] : argv.slice(2);
    const run = await program(args[0]);
    await warnOfUnknownVariables(run.commands);
    await run.parseAsync(args, { from: 'user' });
  } catch (error) {
    process.exitCode = report(error);
  }
}

async function program(name: string | undefined): Promise<Command> {
  const program = new Command('plant-store')
    .enablePositionalOptions()
    .description(
      'A service that stores plants and never loses a confirmed plant. Ids are exact 64-bit integers.',
    )
    .version(VERSION)
    .showHelpAfterError('(run the command with --help to see its arguments and options)')
    .configureOutput({ outputError: (text, write) => write(usageError(text)) })
    .exitOverride();
  const wanted =
    name !== undefined && Object.hasOwn(COMMANDS, name) ? [COMMANDS[name]!] : Object.values(COMMANDS);
  for (const load of wanted) {
    const command = await load();
    program.addCommand(command);
    // Commander does not pass settings such as the exit codes on to commands that were made apart.
    for (const each of [command, ...command.commands]) each.copyInheritedSettings(program);
  }
  return program;
}

/** A misspelt variable would otherwise be ignored without a word. */
async function warnOfUnknownVariables(loaded: readonly Command[]): Promise<void> {
  if (unknownVariables(process.env, loaded).length === 0) return;
  // It may be a setting of another command: one file of variables may serve all.
  const commands = await Promise.all(Object.values(COMMANDS).map(load => load()));
  for (const name of unknownVariables(process.env, commands))
    console.error(
      `WARNING: ${visible(name)} is no setting, and is ignored; docs/reference.md lists the settings`,
    );
}

/**
 * Commander repeats arguments that it does not understand, such as a database URL with a password.
 * A password may contain any character, so the rest of the line after `postgres:` is removed.
 */
function usageError(text: string): string {
  const shown = text.split('\n').map(visible).join('\n');
  return shown.replace(/^error: /, 'plant-store: ').replace(/(postgres(?:ql)?:).*/gi, '$1…');
}

function report(error: unknown): number {
  // The store changed while it was read, and the later error says so.
  if (error instanceof SuppressedError) return report(error.error);
  // Commander has printed the message. Its own exit code for a usage error is 1.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof Failure || error instanceof StoreRejected) {
    console.error(`plant-store: ${visible(error.message)}`);
    return error instanceof Failure ? error.exitCode : 1;
  }
  if (error instanceof Interruption) {
    console.error(`plant-store: stopped; ${error.consequence}`);
    return error.exitCode;
  }
  if (error instanceof StoreDamaged) {
    console.error(
      `plant-store: the store is damaged: ${visible(error.message)}; not everything was read; restore a backup (docs/operate/backup.md)`,
    );
    return 1;
  }
  if (error instanceof StoreUnavailable) {
    console.error(`plant-store: the store is not available: ${visible(error.message)}; try again later`);
    return 1;
  }
  console.error('plant-store: unexpected internal error. Please report this:');
  console.error(error instanceof StoreInternalError ? error.cause : error);
  return 1;
}

/** EPIPE needs no message: the reader wanted no more, for example in a pipe to `less`. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(STDOUT_CLOSED_EXIT_CODE);
  console.error(`plant-store: the output cannot be written (${error.code}) and is not complete`);
  process.exit(1);
}
