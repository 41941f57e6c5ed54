import { Command, CommanderError } from 'commander';
import { StoreRefused } from '../store/plant-store.ts';
import { exportCommand } from './export.ts';
import { Failure } from './failure.ts';
import { openApiCommand } from './openapi.ts';
import { serveCommand } from './serve.ts';
import { showCommand } from './show.ts';
import { tokenCommand } from './token.ts';

/**
 * Runs the command line: results go to stdout, talk to stderr. The exit code is 0 when it was done, 1 when it
 * failed and 2 when it was asked for wrongly.
 *
 * @param argv as `process.argv`
 */
export async function main(argv: string[]): Promise<void> {
  try {
    await program().parseAsync(argv);
  } catch (error) {
    process.exitCode = report(error);
  }
}

function program(): Command {
  const program = new Command('plant-store')
    .description('Keeps every plant it says it kept, digit for digit.')
    .showHelpAfterError('(run it with --help to see how it is used)')
    .exitOverride();
  for (const command of [serveCommand(), tokenCommand(), exportCommand(), showCommand(), openApiCommand()]) {
    program.addCommand(command.copyInheritedSettings(program));
  }
  return program;
}

/** Says on stderr what went wrong, and chooses the exit code. */
function report(error: unknown): number {
  // Commander has said it already; its own exit code is 1 for misuse too.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof Failure || error instanceof StoreRefused) {
    console.error(`plant-store: ${error.message}`);
    return error instanceof Failure ? error.exitCode : 1;
  }
  console.error('plant-store failed in a way it does not know. Please report this:');
  console.error(error);
  return 1;
}
