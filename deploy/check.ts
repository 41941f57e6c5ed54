/**
 * Checks the files of this folder with the programs that read them. It sends plants through nginx,
 * Caddy and HAProxy to a service, and to two instances that restart in turn. It needs Debian
 * packages, and names those that are missing.
 *
 *   npm run check:deploy
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { freePort } from '../test/harness/free-port.ts';
import { LoggingClient } from '../test/harness/logging-client.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { PROGRAM, type ServeProcess, startServe } from '../test/harness/program.ts';
import { addToken } from '../test/harness/running-service.ts';
import { faultsIn } from '../test/harness/stored-revisions.ts';
import { until } from '../test/harness/until.ts';

/** The programs, and the Debian package of each. */
const PACKAGES = {
  caddy: 'caddy',
  curl: 'curl',
  'docker-compose': 'docker-compose',
  haproxy: 'haproxy',
  nginx: 'nginx',
  promtool: 'prometheus',
  'systemd-analyze': 'systemd',
};
const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const CERTIFICATES = fileURLToPath(new URL('../test/harness/postgres-tls', import.meta.url));
// Debian has nginx in a folder that is not on the path of every user.
process.env.PATH += ':/usr/sbin';
/** Clients of the load on two instances, and the pause of each after a response. */
const CLIENTS = 16;
const PAUSE_MS = 10;
/** How both instances end in each round of restarts. */
const ROUNDS = ['SIGTERM', 'SIGTERM', 'SIGKILL'] as const;
/** No response may take longer while one instance runs. Far longer than any on a slow machine. */
const RESPONSE_MAX_MS = 4_000;
const temporary = mkdtempSync(join(tmpdir(), 'plant-store-deploy-'));
// The workers of nginx run as another user, and write long bodies to a file.
chmodSync(temporary, 0o755);

/** Runs a program, and returns its messages. If it fails, the error has them. */
function run(program: string, args: string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', input });
  assert.equal(status, 0, `${program} ${args.join(' ')}\n${stdout}${stderr}`);
  return stdout + stderr;
}

/** A file of this folder. It must contain each key of `changes`, which becomes the value. */
function changed(name: string, changes: Record<string, string>): string {
  let text = readFileSync(join(FOLDER, name), 'utf8');
  for (const [from, to] of Object.entries(changes)) {
    assert.ok(text.includes(from), `${name} does not contain: ${from}`);
    text = text.replaceAll(from, to);
  }
  return text;
}

/** A change that repeats the line of the one instance for each instance. */
function serverLines(name: string, instances: readonly string[]): Record<string, string> {
  const found = / server .*127\.0\.0\.1:8080.*/.exec(readFileSync(join(FOLDER, name), 'utf8'));
  assert.ok(found, `${name} has no line for an instance`);
  const [line] = found;
  const lineOf = (each: string): string => line.replace('127.0.0.1:8080', each).replace(' one ', ` ${each} `);
  return { [line]: instances.map(lineOf).join('\n') };
}

function checkSystemd(): void {
  const unit = join(temporary, 'plant-store.service');
  writeFileSync(unit, changed('plant-store.service', { '/usr/local/bin/plant-store': PROGRAM }));
  const verify = (): void => {
    const messages = run('systemd-analyze', ['verify', '--recursive-errors=no', unit]);
    // Most faults leave the exit code at 0, and other units of this machine may have faults.
    assert.doesNotMatch(messages, /plant-store/);
  };
  verify();
  const security = run('systemd-analyze', ['security', '--offline=true', '--threshold=20', unit]);
  console.log(security.trimEnd().split('\n').at(-1));
  mkdirSync(`${unit}.d`);
  cpSync(join(FOLDER, 'plant-store-postgresql.conf'), join(`${unit}.d`, 'postgresql.conf'));
  verify();
}

/** The instances behind a proxy. The operations listeners have the same port on all hosts. */
interface Upstream {
  instances: readonly string[];
  opsPort: number;
}

/** Writes the configuration of a proxy, and returns the arguments of the program. */
type Configure = (port: number, upstream: Upstream) => string[];

const nginx: Configure = (port, { instances }) => {
  const site = changed('nginx.conf', {
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
    'listen [::]:443 ssl;': '',
    ...serverLines('nginx.conf', instances),
    '/etc/ssl/plants.example.pem': `${CERTIFICATES}/server.pem`,
    '/etc/ssl/private/plants.example.key': `${CERTIFICATES}/server-key.pem`,
  });
  const parts = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const folders = parts.map(each => `${each}_temp_path ${temporary};`).join(' ');
  const file = join(temporary, 'nginx.conf');
  const main = `daemon off; pid ${temporary}/pid; events {}`;
  writeFileSync(file, `${main} http { access_log off; ${folders}\n${site}}`);
  const options = ['-e', 'stderr', '-c', file];
  run('nginx', [...options, '-t']);
  return options;
};

const caddy: Configure = (port, { instances, opsPort }) => {
  const certificate = `tls ${CERTIFICATES}/server.pem ${CERTIFICATES}/server-key.pem`;
  const site = changed('Caddyfile', {
    'plants.example {': `https://localhost:${port} {\n\tbind 127.0.0.1\n\t${certificate}`,
    'https:// {': `https://:${port} {\n\tbind 127.0.0.1`,
    'reverse_proxy 127.0.0.1:8080': `reverse_proxy ${instances.join(' ')}`,
    'health_port 8081': `health_port ${opsPort}`,
  });
  const file = join(temporary, 'Caddyfile');
  writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`);
  const options = ['--adapter', 'caddyfile', '--config', file];
  run('caddy', ['validate', ...options]);
  return ['run', ...options];
};

const haproxy: Configure = (port, { instances, opsPort }) => {
  const certificate = join(temporary, 'haproxy.pem');
  const parts = ['server.pem', 'server-key.pem'].map(name => readFileSync(join(CERTIFICATES, name)));
  writeFileSync(certificate, Buffer.concat(parts));
  const file = join(temporary, 'haproxy.cfg');
  const text = changed('haproxy.cfg', {
    // Only root may change the user.
    'user haproxy\n': '\n',
    'group haproxy\n': '\n',
    ':443,[::]:443 v6only': `127.0.0.1:${port}`,
    '/etc/haproxy/plants.example.pem': certificate,
    ...serverLines('haproxy.cfg', instances),
    'port 8081': `port ${opsPort}`,
  });
  writeFileSync(file, text);
  run('haproxy', ['-c', '-f', file]);
  return ['-db', '-f', file];
};

const PROXIES = { nginx, caddy, haproxy };
type Proxy = keyof typeof PROXIES;

/** Starts a proxy; `await using` ends it. */
async function startProxy(proxy: Proxy, upstream: Upstream): Promise<AsyncDisposable & { url: string }> {
  const port = await freePort();
  const child = spawn(proxy, PROXIES[proxy](port, upstream), {
    env: { ...process.env, HOME: temporary, XDG_DATA_HOME: temporary, XDG_CONFIG_HOME: temporary },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  const end = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  const url = `https://localhost:${port}`;
  await until('the proxy responds', () => spawnSync('curl', ['-sk', url]).status === 0);
  return { url, [Symbol.asyncDispose]: end };
}

async function checkProxy(proxy: Proxy): Promise<void> {
  const opsPort = await freePort();
  const database = `sqlite:${join(temporary, `${proxy}.db`)}`;
  await using service = await startServe(database, ['--ops', `127.0.0.1:${opsPort}`]);
  await using started = await startProxy(proxy, { instances: [new URL(service.url).host], opsPort });
  await sendThrough(started.url, service);
}

/**
 * Restarts two instances on one store in turn under load. The second stops as soon as the first
 * accepts plants again, or after `pauseMs`.
 *
 * @param failuresMax of each restart
 */
async function checkRestarts(proxy: Proxy, failuresMax: number, pauseMs = 0): Promise<void> {
  await using postgres = await PostgresServer.start();
  const database = await postgres.createDatabase();
  const token = await addToken(database, 'load');
  const [port, opsPort] = [await freePort(), await freePort()];
  const hosts = ['127.0.0.1', '127.0.0.2'];
  const start = (host: string): Promise<ServeProcess> =>
    startServe(database, ['--listen', `${host}:${port}`, '--ops', `${host}:${opsPort}`]);
  const processes = new Map<string, ServeProcess>();
  const log: LoggedRequest[] = [];
  try {
    for (const host of hosts) processes.set(host, await start(host));
    const instances = hosts.map(host => `${host}:${port}`);
    await using started = await startProxy(proxy, { instances, opsPort });
    await using _load = startLoad(started.url, token, log);
    for (const signal of ROUNDS) {
      for (const host of hosts) {
        await wait(pauseMs);
        await processes.get(host)!.stop(signal);
        processes.set(host, await start(host));
      }
    }
  } finally {
    for (const each of processes.values()) await each.stop('SIGKILL');
  }
  assertResponses(proxy, log, failuresMax * ROUNDS.length * hosts.length);
  // The proxy may have repeated a plant after a lost response, which the client does not know.
  const faults = (await faultsIn(database, log)).filter(each => !each.startsWith('stranger'));
  assert.deepEqual(faults, [], 'the store does not match the responses');
}

/** Prints the counts, and compares them with the limits. */
function assertResponses(proxy: Proxy, log: readonly LoggedRequest[], failuresMax: number): void {
  const failures = log.filter(({ response }) => response?.status !== 200).length;
  const longestMs = Math.ceil(Math.max(...log.map(({ sentAt, respondedAt }) => respondedAt - sentAt)));
  console.log(`${proxy}: ${failures} of ${log.length} requests failed, the longest took ${longestMs} ms`);
  assert.ok(failures < log.length, 'no plant was stored');
  assert.ok(failures <= failuresMax, `at most ${failuresMax} may fail`);
  assert.ok(longestMs <= RESPONSE_MAX_MS, `none may take longer than ${RESPONSE_MAX_MS} ms`);
}

/** Clients that send plants through a proxy, one after the other; `await using` stops them. */
function startLoad(url: string, token: string, log: LoggedRequest[]): AsyncDisposable {
  const ca = readFileSync(`${CERTIFICATES}/ca.pem`);
  let isOver = false;
  let id = 0n;
  const run = async (): Promise<void> => {
    let client = new LoggingClient(url, token, log, ca);
    while (!isOver) {
      await client.send({ id: ++id, name: 'Monstera deliciosa' });
      if (client.ended) {
        await client.close();
        client = new LoggingClient(url, token, log, ca);
      }
      await wait(PAUSE_MS);
    }
    await client.close();
  };
  const clients = Array.from({ length: CLIENTS }, run);
  const stop = async (): Promise<void> => {
    isOver = true;
    await Promise.all(clients);
  };
  return { [Symbol.asyncDispose]: stop };
}

async function sendThrough(proxy: string, service: ServeProcess): Promise<void> {
  const options = ['-sSi', '--http1.1', '--cacert', `${CERTIFICATES}/ca.pem`, '-H', 'Expect:'];
  const credential = ['-H', `Authorization: Bearer ${service.token}`];
  const get = (path: string): string => run('curl', [...options, ...credential, proxy + path]);
  const json = ['-H', 'Content-Type: application/json', '--data-binary', '@-', `${proxy}/plants`];
  const send = (nameLength: number): string => {
    const body = `{"id":9223372036854775807,"name":"${'x'.repeat(nameLength)}"}`;
    return run('curl', [...options, ...credential, ...json], body);
  };
  assert.match(send(10), /^HTTP\/1\.1 200 .*^plant-id: 9223372036854775807\r$/ims);
  assert.match(send(1_000_000), /^HTTP\/1\.1 200 /);
  assert.match(send(1_100_000), /^HTTP\/1\.1 413 .*\{"error":41301,/s);
  for (const path of ['/livez', '/readyz', '/metrics', '/console/'])
    assert.match(get(path), /^HTTP\/1\.1 404 .*\{"error":40401,/s, path);
  const otherHost = run(
    'curl',
    [...options, ...credential, '-H', 'Host: localhost.', ...json],
    '{"id":7,"name":"x"}',
  );
  assert.match(otherHost, /^HTTP\/1\.1 (?:421 |200 .*^plant-id: 7\r$)/ims);
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
  assert.match(send(10), /^HTTP\/1\.1 503 .*^retry-after: 1\r$.*\{"error":50302,/ims);
}

const checks: Record<string, () => unknown> = {
  'systemd unit': checkSystemd,
  'Prometheus configuration and rules': () =>
    run('promtool', ['check', 'config', join(FOLDER, 'prometheus.yaml')]),
  'Compose file': () => run('docker-compose', ['-f', join(FOLDER, 'compose.yaml'), 'config', '-q']),
  'plants through nginx': () => checkProxy('nginx'),
  'plants through Caddy': () => checkProxy('caddy'),
  'plants through HAProxy': () => checkProxy('haproxy'),
  'restarts behind nginx': () => checkRestarts('nginx', 0),
  // What is in flight when an instance ends: at most one request of each client.
  'restarts behind Caddy': () => checkRestarts('caddy', CLIENTS, 2_000),
  'restarts behind HAProxy': () => checkRestarts('haproxy', 0),
};

const missing = Object.entries(PACKAGES).filter(
  ([program]) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0,
);
if (missing.length > 0) {
  console.error(`missing: ${missing.map(([program]) => program).join(', ')}`);
  console.error(`On Debian: apt-get install ${missing.map(([, name]) => name).join(' ')}`);
  process.exitCode = 1;
} else {
  for (const [what, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok: ${what}`);
    } catch (error) {
      process.exitCode = 1;
      console.error(`FAULT: ${what}: ${(error as Error).message}`);
    }
  }
}
rmSync(temporary, { recursive: true });
