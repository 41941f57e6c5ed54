import { Command } from 'commander';
import { inExistingStore } from '../engines/openers/open-store.ts';
import { makeConsoleCode } from '../operate/console/console-code.ts';
import { type ListenAddress, listenerUrl } from '../server/listen-address.ts';
import { opsSetting } from './options/serve-options.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './shared/database-option.ts';
import { Failure } from './shared/failure.ts';

export function consoleCommand(): Command {
  return addDatabaseOptions(new Command('console'))
    .description('print a link to the console, the page for operators; it works once, within 5 minutes')
    .addOption(opsSetting())
    .action(printLink);
}

/** @param code a one-time code. It is the fragment of the link, which browsers do not send. */
export function consoleLink(ops: ListenAddress, code: string): string {
  return `${listenerUrl(ops)}/console/#${code}`;
}

/** The timeout of a response, since a service that hangs must not delay the link. */
const RESPONSE_TIMEOUT_MS = 2_000;

async function printLink(options: DatabaseOptions & { ops: ListenAddress }): Promise<void> {
  const database = readDatabase(options);
  const code = await inExistingStore(database, ({ operatorTables }) => makeConsoleCode(operatorTables));
  const link = consoleLink(options.ops, code);
  const status = await fetch(link, { signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) }).then(
    response => response.status,
    () => undefined,
  );
  if (status === undefined)
    console.error('WARNING: no service responds there; start it, or name its address with --ops');
  else if (status === 404)
    throw new Failure('this service has no console; start it with --console on, and run this command again');
  else if (status !== 200)
    console.error(`WARNING: the address of the console responds with status ${status}`);
  console.log(link);
}
