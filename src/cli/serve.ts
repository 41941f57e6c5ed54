import { writeSync } from 'node:fs';
import { Command } from 'commander';
import { type Logger, pino } from 'pino';
import { EXIT_MS } from '../contract/limits.ts';
import { newPlantJson } from '../contract/plant.ts';
import { ListenFailed, type Service, startService } from '../service.ts';
import { shownDatabase } from '../store/database-url.ts';
import { readDatabase } from './database-option.ts';
import { Failure } from './failure.ts';
import { onFirstSignal } from './interruption.ts';
import { addServeOptions, type ServeOptions } from './serve-options.ts';

export function serveCommand(): Command {
  return addServeOptions(new Command('serve'))
    .description('run the service until it is told to stop (SIGTERM, SIGINT)')
    .addHelpText(
      'after',
      `
Examples:
  $ npx plant-store serve --database sqlite:/var/lib/plants.db --listen 0.0.0.0:8080
  $ npx plant-store serve --database postgres://plant_service@db1.example,db2.example/plants`,
    )
    .action(serve);
}

async function serve(options: ServeOptions): Promise<void> {
  const database = readDatabase(options);
  const log = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write: writeLogLine });
  // Before the first word to anyone, who may answer it with a signal.
  const signal = firstSignal();
  // Also where the signal comes before the store is open; whatever holds the process after that, it does so in vain.
  void signal.then(() => setTimeout(endLate, EXIT_MS, log).unref());
  const service = await start(database, options, log);
  greet(service, options, shownDatabase(database));
  log.info(
    { database: shownDatabase(database), address: service.address, ops: service.opsAddress },
    'serving',
  );
  log.info({ signal: await signal }, 'shutting down: answering what was taken');
  await service.close();
  log.info('stopped');
}

function endLate(log: Logger): void {
  log.error('the store did not come to its end in time; what was answered 200 is on disk');
  process.exit(1);
}

async function start(database: string, options: ServeOptions, log: Logger): Promise<Service> {
  const { listen, ops, connections, rateLimit, logRequests } = options;
  try {
    return await startService({
      ...{ database, listen, ops, connections, rateLimit, log },
      repeatedIdRule: options.repeatedId,
      bodyBytesMax: options.bodyLimit,
      docs: options.docs === 'on',
      corsOrigins: options.corsOrigin,
      opsHosts: options.opsHost,
      ...(logRequests === 'on' && { logRequest: request => log.info(request, 'answered') }),
    });
  } catch (error) {
    if (error instanceof ListenFailed)
      throw new Failure(listenAdvice(error, error.address === ops ? '--ops' : '--listen'));
    throw error;
  }
}

function listenAdvice({ address: { host, port }, code, message }: ListenFailed, flag: string): string {
  if (code === 'EADDRINUSE') {
    return `${host}:${port} is taken by another program; stop it, or choose another address with ${flag}`;
  }
  if (code === 'EACCES') {
    return `${host}:${port} may not be used by this user; choose a port from 1024 up with ${flag}`;
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `${host} is not an address of this machine; choose another with ${flag}`;
  }
  return `${message}; choose another address with ${flag}`;
}

/** Says on stderr how to send the first plant. A token is shown here once and goes to no log. */
function greet(service: Service, { listen: { host }, docs }: ServeOptions, database: string): void {
  const { address, firstToken, hasToken, warnings } = service;
  const shownHost =
    host === '0.0.0.0' || host === '::'
      ? 'localhost'
      : address.family === 'IPv6'
        ? `[${address.address}]`
        : address.address;
  const base = `http://${shownHost}:${address.port}`;
  if (firstToken !== undefined) {
    const plant = newPlantJson({ id: 9007199254740993n, name: 'Monstera deliciosa', tag: 'houseplant' });
    console.error(
      `The store is new. Its first token, shown this once:\n\n  ${firstToken}\n\n` +
        `Send a plant with it from another terminal:\n\n` +
        `  curl -i ${base}/plants -H 'Authorization: Bearer ${firstToken}' -H 'Content-Type: application/json' -d '${plant}'\n`,
    );
  } else if (!hasToken) {
    console.error(
      `The store has no token; make one with: npx plant-store token create LABEL --database ${database}\n` +
        'Where it is the target of a copy that was not finished, run the copy again instead.\n',
    );
  }
  if (docs === 'on') console.error(`A page to read and to try it out: ${base}/docs`);
  for (const warning of warnings) console.error(`WARNING: ${warning}`);
  console.error(`Taking plants at ${base}/plants. Stop with Ctrl-C.`);
}

/** A log that cannot be written, for a full disk or a reader that went away, must not stop the service: the line is lost. */
function writeLogLine(line: string): void {
  try {
    writeSync(process.stdout.fd, line);
  } catch {
    // There is nowhere left to say it.
  }
}

function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    // A second SIGTERM changes nothing; a second Ctrl-C ends the process at once, as a person at a keyboard expects.
    process.on('SIGTERM', resolve);
    onFirstSignal(['SIGINT'], resolve);
  });
}
