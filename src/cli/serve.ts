import { isDeepStrictEqual } from 'node:util';
import { Command } from 'commander';
import { type Logger, pino } from 'pino';
import { newPlantJson } from '../core/contract/plant.ts';
import { problemText } from '../core/problem.ts';
import {
  absoluteAddress,
  type DatabaseAddress,
  databaseFlag,
  shownDatabase,
} from '../engines/openers/database-url.ts';
import { openerOf } from '../engines/openers/open-store.ts';
import type { ShownSetting } from '../operate/console/operator-console.ts';
import { ListenFailed } from '../server/listen.ts';
import { isLoopback, listenAddressText, listenerUrl } from '../server/listen-address.ts';
import { type OpenExtra, type Service, startService } from '../service.ts';
import { consoleLink } from './console.ts';
import type { Extra } from './extra.ts';
import { firstTokenFile, handOverFirstToken, publishFirstToken } from './first-token-file.ts';
import { addServeOptions, rateLimitText, type ServeOptions } from './options/serve-options.ts';
import { logOutput } from './output/log-output.ts';
import { readDatabase } from './shared/database-option.ts';
import { Failure } from './shared/failure.ts';
import { onFirstSignal } from './shared/interruption.ts';

/** Time from SIGTERM to the end of the process, even if a hanging disk blocks the store. */
export const EXIT_MS = 9_500;

/** @param extras add their options, which decide whether the service opens them */
export function serveCommand(extras: readonly Extra[]): Command {
  return addServeOptions(new Command('serve'), extras)
    .description('run the service; Ctrl-C or SIGTERM stops it')
    .addHelpText(
      'after',
      `
A port alone, such as 8080, is on 127.0.0.1. In a checkout, \`npm start\` also runs
this command, with -- before the options: npm start -- --listen 0.0.0.0:8080

Examples:
  $ npx plant-store serve --database sqlite:/var/lib/plants.db --listen 0.0.0.0:8080
  $ npx plant-store serve --database postgres://plant_service@db1.example,db2.example/plants`,
    )
    .action((options, command) => serve({ database: readDatabase(options), options, command, extras }));
}

/** A command that runs a service. */
interface ServingCommand {
  database: DatabaseAddress;
  options: ServeOptions;
  command: Command;
  /** Each one reads in the options whether the service opens it. */
  extras: readonly Extra[];
  /** What the command itself attaches to the service. */
  attach?: OpenExtra;
}

/** Runs a service until a signal stops it. @throws {Failure} if it cannot start */
export async function serve(serving: ServingCommand): Promise<void> {
  const { database, options } = serving;
  const log = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, logOutput());
  // A reader of the output may send a signal at once, so the listener comes first.
  const signal = firstSignal();
  // The limit also applies to a shutdown that begins before the store is open.
  const endLate = (): void => {
    log.error('the store did not close in time; every plant with a 200 response is on disk');
    process.exit(1);
  };
  void signal.then(() => setTimeout(endLate, EXIT_MS).unref());
  const service = await start(serving, log);
  await greet(service, options, database);
  log.info(
    { database: shownDatabase(database), address: service.address, ops: service.opsAddress },
    'service started',
  );
  log.info({ signal: await signal }, 'shutting down: completing the accepted requests');
  await service.close();
  log.info('stopped');
}

async function start(
  { database, options, command, extras, attach }: ServingCommand,
  log: Logger,
): Promise<Service> {
  const opens = extras.map(({ read }) => read?.(options, process.env, warning => log.warn(warning)));
  const { listen, ops, connections, rateLimit, logRequests } = options;
  const hasConsole = (options.console ?? (isLoopback(ops) ? 'on' : 'off')) === 'on';
  try {
    return await startService({
      database,
      listen,
      ops,
      connections,
      rateLimit,
      log,
      repeatedIdRule: options.repeatedId,
      bodyBytesMax: options.bodyLimit,
      docs: options.docs === 'on',
      publicUrl: options.publicUrl,
      console: hasConsole
        ? {
            database: shownDatabase(absoluteAddress(database)),
            settings: shownSettings(command, options, database),
            ops: command.getOptionValueSource('ops') === 'default' ? undefined : listenAddressText(ops),
          }
        : undefined,
      handOverFirstToken: token => handOverFirstToken(token, database),
      corsOrigins: options.corsOrigin,
      trustedProxies: options.trustProxy,
      opsHosts: options.opsHost,
      extras: [...opens, attach].filter(open => open !== undefined),
      ...(logRequests === 'on' && { logRequest: request => log.info(request, 'request completed') }),
    });
  } catch (error) {
    if (!(error instanceof ListenFailed)) throw error;
    // If a service uses the same SQLite store, its user must know this first.
    if (error.code === 'EADDRINUSE') openerOf(database).file?.rejectIfServed();
    if (isDeepStrictEqual(listen, ops))
      throw new Failure('--listen and --ops name the same address; give each its own', 2);
    throw new Failure(listenAdvice(error, error.address === ops ? '--ops' : '--listen'));
  }
}

function listenAdvice({ address, code, message }: ListenFailed, flag: string): string {
  if (code === 'EADDRINUSE')
    return `another program uses ${listenAddressText(address)}; stop it, or choose another address with ${flag}; a second service needs its own --listen, --ops and --database; \`add\` and \`import\` then need --url`;
  if (code === 'EACCES')
    return `this user has no permission to listen on ${listenAddressText(address)}; choose port 1024 or higher with ${flag}`;
  return `${message}; choose another address with ${flag}`;
}

/** Prints on stderr how to send a plant. The first token is shown only here, never logged. */
async function greet(
  service: Service,
  { listen, ops, docs }: ServeOptions,
  database: DatabaseAddress,
): Promise<void> {
  const { address, opsAddress, hasToken, makeConsoleCode, warnings } = service;
  const firstToken = (await publishFirstToken(database)) ?? service.firstToken;
  const base = listenerUrl({ ...listen, port: address.port });
  if (firstToken !== undefined) {
    const file = firstTokenFile(database) ?? '';
    const [where, credential] = process.stderr.isTTY
      ? [`shown only now; save it:\n\n  ${firstToken}`, `'Authorization: Bearer ${firstToken}'`]
      : [`in the file ${file}`, `"Authorization: Bearer $(cat '${file.replaceAll("'", "'\\''")}')"`];
    console.error(
      `The store is new. Its first token is ${where}\n\nSend a plant from another terminal:\n\n` +
        `${curl(base, credential)}\n`,
    );
  } else if (!hasToken) {
    console.error(
      `The store has no token; create one with: npx plant-store token create LABEL --database ${shownDatabase(database)}\n` +
        'If the store is the target of an unfinished copy, run the copy again instead.\n',
    );
  }
  if (docs === 'on') console.error(`Documentation, with a form to send a plant:\n\n  ${base}/docs\n`);
  // The link is a credential, so only a terminal shows it, and never a journal.
  if (makeConsoleCode !== undefined && process.stderr.isTTY) {
    const code = await makeConsoleCode().catch(() => undefined);
    const used = { ...ops, port: opsAddress.port };
    const link = code && consoleLink(used, code);
    const again = `${databaseFlag(shownDatabase(database))} --ops ${listenAddressText(used)}`;
    if (link !== undefined) console.error(`Console (this link works once, within 5 minutes):\n\n  ${link}\n`);
    console.error(`For another link to the console:\n\n  npx plant-store console ${again}\n`);
  }
  for (const warning of warnings) console.error(`WARNING: ${problemText(warning)}`);
  console.error(`Accepting plants at ${base}/plants. Stop with Ctrl-C.`);
}

/**
 * A command whose lines fit a terminal of 80 columns.
 *
 * @param credential the header field, quoted for a shell
 */
function curl(base: string, credential: string): string {
  const plant = newPlantJson({ id: 9007199254740993n, name: 'Monstera deliciosa', tag: 'houseplant' });
  const lines = [
    `curl -i ${base}/plants`,
    `  -H ${credential}`,
    `  -H 'Content-Type: application/json'`,
    `  -d '${plant}'`,
  ];
  return lines.map(line => `  ${line}`).join(' \\\n');
}

/** The settings of the service and where they come from, without passwords. */
function shownSettings(
  command: Command,
  { listen, ops, rateLimit, bodyLimit }: ServeOptions,
  database: DatabaseAddress,
): ShownSetting[] {
  // Other values are texts, numbers, or lists of texts.
  const texts: Partial<Record<string, string>> = {
    listen: listenAddressText(listen),
    ops: listenAddressText(ops),
    'rate-limit': rateLimit && rateLimitText(rateLimit),
    'body-limit': `${bodyLimit} bytes`,
    // Only the console shows this list, so the console is on, possibly by default.
    console: 'on',
    database: shownDatabase(absoluteAddress(database)),
  };
  return command.options.map(option => {
    const name = option.name();
    const value: unknown = command.getOptionValue(option.attributeName()) ?? 'not set';
    const source = command.getOptionValueSource(option.attributeName());
    return [
      name,
      texts[name] ?? (Array.isArray(value) ? value.join(', ') : String(value)),
      source === 'cli' ? 'flag' : source === 'env' ? 'environment' : 'default',
    ];
  });
}

function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    // Without a listener, Node ends when its terminal closes, even under nohup.
    process.on('SIGHUP', () => {});
    // A second SIGTERM changes nothing. A second Ctrl-C ends the process at once, as users expect.
    process.on('SIGTERM', resolve);
    onFirstSignal(['SIGINT'], resolve);
  });
}
