import { Command, CommanderError } from 'commander';
import { StoreRejected, StoreUnavailable } from '../store/plant-store.ts';
import { VERSION } from '../version.ts';
import { Failure } from './failure.ts';
import { Interruption } from './interruption.ts';
import { BACKUP_PROCESS } from './own-program.ts';

/** Loaded one by one: `serve` is up sooner without what only `import` needs. */
export const COMMANDS: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./serve.ts')).serveCommand(),
  token: async () => (await import('./token.ts')).tokenCommand(),
  add: async () => (await import('./add.ts')).addCommand(),
  import: async () => (await import('./import.ts')).importCommand(),
  show: async () => (await import('./show.ts')).showCommand(),
  export: async () => (await import('./export.ts')).exportCommand(),
  copy: async () => (await import('./copy.ts')).copyCommand(),
  backup: async () => (await import('./backup.ts')).backupCommand(),
  check: async () => (await import('./check.ts')).checkCommand(),
  openapi: async () => (await import('./openapi.ts')).openApiCommand(),
};

/**
 * Runs the command line: results go to stdout, talk to stderr. The exit code is 0 when it was done, 1 when it
 * failed and 2 when it was asked for wrongly.
 */
export async function main(argv: string[]): Promise<void> {
  if (argv[2] === BACKUP_PROCESS && process.send !== undefined) {
    const { runBackupProcess } = await import('./backup/backup-process.ts');
    return await runBackupProcess(argv[3]!, argv[4]!);
  }
  process.stdout.on('error', endWithReader);
  try {
    await (await program(argv[2])).parseAsync(argv);
  } catch (error) {
    process.exitCode = report(error);
  }
}

async function program(name: string | undefined): Promise<Command> {
  const program = new Command('plant-store')
    .description('Keeps every plant it says it kept, digit for digit.')
    .version(VERSION)
    .showHelpAfterError('(run it with --help to see how it is used)')
    .configureOutput({ outputError: (text, write) => write(withoutAddresses(text)) })
    .exitOverride();
  const wanted =
    name !== undefined && Object.hasOwn(COMMANDS, name) ? [COMMANDS[name]!] : Object.values(COMMANDS);
  for (const load of wanted) addCommand(program, await load());
  return program;
}

/**
 * Commander repeats what it does not understand, such as a misspelt option and the address behind it; where the
 * password in that one ends, only the end of the line tells for sure.
 */
function withoutAddresses(text: string): string {
  return text.replace(/(postgres(?:ql)?:).*/gi, '$1…');
}

/** Settings such as the exit codes reach a command only when it takes them over, and its own commands likewise. */
function addCommand(parent: Command, command: Command): void {
  parent.addCommand(command.copyInheritedSettings(parent));
  for (const subcommand of command.commands) subcommand.copyInheritedSettings(parent);
}

function report(error: unknown): number {
  // Commander has said it already; its own exit code is 1 for misuse too.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof Failure || error instanceof StoreRejected) {
    console.error(`plant-store: ${error.message}`);
    return error instanceof Failure ? error.exitCode : 1;
  }
  if (error instanceof Interruption) {
    console.error(`plant-store: stopped; ${error.consequence}`);
    return error.exitCode;
  }
  if (error instanceof StoreUnavailable) {
    console.error(`plant-store: the store cannot be used now: ${error.message}; try again when that is over`);
    return 1;
  }
  console.error('plant-store failed in a way it does not know. Please report this:');
  console.error(error);
  return 1;
}

/** Whoever read stdout has seen enough, as `head` does; anything else, such as a full disk, is said. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0);
  console.error(`plant-store: the output cannot be written (${error.code}); it is not complete`);
  process.exit(1);
}
