import { Command, CommanderError } from 'commander';
import { BACKUP_PROCESS } from './cli/backup/own-program.ts';
import type { Extra } from './cli/extra.ts';
import { unknownVariables } from './cli/options/unknown-variables.ts';
import { Failure } from './cli/shared/failure.ts';
import { Interruption } from './cli/shared/interruption.ts';
import { rejectionText } from './cli/shared/rejection-text.ts';
import {
  StoreDamaged,
  StoreInternalError,
  StoreRejected,
  StoreUnavailable,
} from './core/commit/store-errors.ts';
import * as extras from './extras.ts';
import { visible } from './formats/visible-text.ts';
import { VERSION } from './version.ts';

/** The exit code 128 plus SIGPIPE, which a shell shows for a program whose reader has ended. */
const STDOUT_CLOSED_EXIT_CODE = 141;

const EXTRAS: readonly Extra[] = Object.values(extras);

/** The flag of the address of the store, of all commands but `copy`, which reports its own. */
const DATABASE_FLAG = '--database';

/** Each command is loaded only when it runs: `serve` starts sooner without the code of `import`. */
export const COMMANDS: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./cli/serve.ts')).serveCommand(EXTRAS),
  ...commandsOf(EXTRAS),
  console: async () => (await import('./cli/console.ts')).consoleCommand(),
  health: async () => (await import('./cli/health.ts')).healthCommand(),
  token: async () => (await import('./cli/token.ts')).tokenCommand(EXTRAS),
  add: async () => (await import('./cli/add.ts')).addCommand(),
  import: async () => (await import('../tools/import/import.ts')).importCommand(),
  list: async () => (await import('./cli/list.ts')).listCommand(),
  show: async () => (await import('./cli/show.ts')).showCommand(),
  export: async () => (await import('./cli/export.ts')).exportCommand(),
  stats: async () => (await import('./cli/stats.ts')).statsCommand(),
  copy: async () => (await import('./cli/copy.ts')).copyCommand(),
  verify: async () => (await import('./cli/verify.ts')).verifyCommand(),
  backup: async () => (await import('./cli/backup/backup.ts')).backupCommand(),
  check: async () => (await import('../tools/check/check.ts')).checkCommand(),
  openapi: async () => (await import('./cli/openapi.ts')).openApiCommand(),
};

function commandsOf(extras: readonly Extra[]): Record<string, () => Promise<Command>> {
  const commands = extras.flatMap(({ command }) => command ?? []);
  return Object.fromEntries(commands.map(({ name, load }) => [name, () => load(extras)]));
}

/**
 * Runs the command of a command line. Results go to stdout, messages to stderr. The exit code is 0
 * after success, 1 after a failure, 2 after a usage error.
 */
export async function main(argv: string[]): Promise<void> {
  if (argv[2] === BACKUP_PROCESS && process.send !== undefined) {
    const { runBackupProcess } = await import('./cli/backup/backup-process.ts');
    return await runBackupProcess(argv[3]!, argv[4]!);
  }
  process.stdout.on('error', endOnOutputError);
  try {
    const args = argv[2] === 'version' ? ['--version'] : argv.slice(2);
    const program = await programFor(args[0]);
    rejectLoneServeOption(program, args[0]);
    await warnOfUnknownVariables(program.commands);
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** @param name the command to load; undefined or unknown loads all, for the help */
async function programFor(name: string | undefined): Promise<Command> {
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

/** Names `serve` to those who know servers without commands. @throws {Failure} */
function rejectLoneServeOption(program: Command, argument = ''): void {
  const option = argument.replace(/=.*/s, '');
  const serve = program.commands.find(command => command.name() === 'serve');
  if (serve?.options.some(({ long }) => long === option))
    throw new Failure(`${option} needs a command before it: npx plant-store serve ${option} …`, 2);
}

/** Warns of misspelt variables, which would otherwise be ignored without a message. */
async function warnOfUnknownVariables(loaded: readonly Command[]): Promise<void> {
  if (unknownVariables(process.env, loaded).length === 0) return;
  // All commands may share one file of variables, so other commands may know the variable.
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

/** Prints an error for the user. @returns the exit code */
function report(error: unknown): number {
  // The later error explains the earlier one: the store changed while it was read.
  if (error instanceof SuppressedError) return report(error.error);
  // Commander has printed the message. Its own exit code for a usage error is 1.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof Failure) {
    console.error(`plant-store: ${visible(error.message)}`);
    return error.exitCode;
  }
  if (error instanceof StoreRejected) {
    console.error(`plant-store: ${visible(rejectionText(error, DATABASE_FLAG))}`);
    return 1;
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

/** Ends the program. EPIPE gets no message: the reader has ended, such as `less` in a pipe. */
function endOnOutputError(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(STDOUT_CLOSED_EXIT_CODE);
  console.error(`plant-store: the output cannot be written (${error.code}) and is not complete`);
  process.exit(1);
}
