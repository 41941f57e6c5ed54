/**
 * Checks the files of this folder with the programs that read them, and sends plants through nginx
 * and Caddy to a service. It needs Debian packages, and names those that are missing.
 *
 *   npm run check:deploy
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../test/harness/free-port.ts';
import { PROGRAM, type ServeProcess, startServe } from '../test/harness/program.ts';
import { until } from '../test/harness/until.ts';

/** The programs, and the Debian package of each. */
const PACKAGES = {
  ...{ curl: 'curl', openssl: 'openssl', nginx: 'nginx', caddy: 'caddy', promtool: 'prometheus' },
  ...{ 'systemd-analyze': 'systemd', 'docker-compose': 'docker-compose' },
};
const FOLDER = fileURLToPath(new URL('.', import.meta.url));
// Debian has nginx where only the PATH of root leads.
process.env.PATH += ':/usr/sbin';
const temporary = mkdtempSync(join(tmpdir(), 'plant-store-deploy-'));
// The workers of nginx run as another user, and write long bodies to a file.
chmodSync(temporary, 0o755);
const [key, certificate] = [join(temporary, 'key.pem'), join(temporary, 'certificate.pem')];

/** Runs a program. @throws with its messages, if it fails */
function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${program} ${args.join(' ')}\n${stdout}${stderr}`);
  return stdout + stderr;
}

/** A file of this folder with other names and addresses, each of which it must contain. */
function changed(name: string, changes: Record<string, string>): string {
  return Object.entries(changes).reduce(
    (text, [from, to]) => {
      assert.ok(text.includes(from), `${name} does not contain: ${from}`);
      return text.replaceAll(from, to);
    },
    readFileSync(join(FOLDER, name), 'utf8'),
  );
}

function checkSystemd(): void {
  const unit = join(temporary, 'plant-store.service');
  writeFileSync(unit, changed('plant-store.service', { '/usr/local/bin/plant-store': PROGRAM }));
  const verify = (): void => {
    const messages = run('systemd-analyze', 'verify', '--recursive-errors=no', unit);
    // Other units of this machine may have faults, and most faults leave the exit code at 0.
    assert.doesNotMatch(messages, /plant-store/);
  };
  verify();
  const security = run('systemd-analyze', 'security', '--offline=true', '--threshold=20', unit);
  console.log(security.trimEnd().split('\n').at(-1));
  mkdirSync(`${unit}.d`);
  cpSync(join(FOLDER, 'plant-store-postgresql.conf'), join(`${unit}.d`, 'postgresql.conf'));
  verify();
}

/** @param upstream the address of the service. @returns the command of the proxy */
type Proxy = (port: number, upstream: string) => string[];

const nginx: Proxy = (port, upstream) => {
  const site = changed('nginx.conf', {
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
    'listen [::]:443 ssl;': '',
    'server 127.0.0.1:8080': `server ${upstream}`,
    '/etc/ssl/plants.example.pem': certificate,
    '/etc/ssl/private/plants.example.key': key,
  });
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    each => `${each}_temp_path ${temporary};`,
  );
  const file = join(temporary, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; pid ${temporary}/pid; events {} http { access_log off; ${folders.join(' ')}\n${site}}`,
  );
  const command = ['nginx', '-e', 'stderr', '-c', file];
  run(command[0]!, ...command.slice(1), '-t');
  return command;
};

const caddy: Proxy = (port, upstream) => {
  const site = changed('Caddyfile', {
    'plants.example {': `https://localhost:${port} {\n\tbind 127.0.0.1\n\ttls ${certificate} ${key}`,
    'reverse_proxy 127.0.0.1:8080': `reverse_proxy ${upstream}`,
  });
  const file = join(temporary, 'Caddyfile');
  writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`);
  const options = ['--adapter', 'caddyfile', '--config', file];
  run('caddy', 'validate', ...options);
  return ['caddy', 'run', ...options];
};

async function checkProxy(proxy: Proxy): Promise<void> {
  await using service = await startServe(`sqlite:${join(temporary, `${proxy.name}.db`)}`);
  const port = await freePort();
  const [program = '', ...args] = proxy(port, new URL(service.url).host);
  const child: ChildProcess = spawn(program, args, {
    env: { ...process.env, HOME: temporary, XDG_DATA_HOME: temporary, XDG_CONFIG_HOME: temporary },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  try {
    await sendThrough(`https://localhost:${port}`, service);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

/** Sends a request to the proxy. @returns the response with its header section */
function request(url: string, token: string, body?: string): string {
  const post = ['-H', 'Content-Type: application/json', '-H', 'Expect:', '--data-binary', '@-'];
  const credential = ['-H', `Authorization: Bearer ${token}`];
  return execFileSync(
    'curl',
    ['-sSi', '--http1.1', '--cacert', certificate, ...credential, ...(body ? post : []), url],
    { input: body, encoding: 'utf8', stdio: 'pipe' },
  );
}

async function sendThrough(url: string, service: ServeProcess): Promise<void> {
  await until('the proxy responds', () => {
    try {
      return request(`${url}/docs`, '') !== '';
    } catch {
      return false;
    }
  });
  const plant = (length: number): string => `{"id":9223372036854775807,"name":"${'x'.repeat(length)}"}`;
  const send = (body: string): string => request(`${url}/plants`, service.token, body);
  assert.match(send(plant(10)), /^HTTP\/1\.1 200 .*^plant-id: 9223372036854775807\r$/ims);
  assert.match(send(plant(1_000_000)), /^HTTP\/1\.1 200 /);
  assert.match(send(plant(1_100_000)), /^HTTP\/1\.1 413 .*\{"error":41301,/s);
  for (const path of ['/livez', '/readyz', '/metrics', '/console/'])
    assert.match(request(url + path, service.token), /^HTTP\/1\.1 404 .*\{"error":40401,/s, path);
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
  assert.match(send(plant(10)), /^HTTP\/1\.1 503 .*^retry-after: 1\r$.*\{"error":50302,/ims);
}

const checks: Record<string, () => unknown> = {
  'the systemd unit': checkSystemd,
  'the configuration and the rules of Prometheus': () =>
    run('promtool', 'check', 'config', join(FOLDER, 'prometheus.yaml')),
  'the Compose file': () => run('docker-compose', '-f', join(FOLDER, 'compose.yaml'), 'config', '-q'),
  'plants through nginx': () => checkProxy(nginx),
  'plants through Caddy': () => checkProxy(caddy),
};

const missing = Object.entries(PACKAGES).filter(
  ([program]) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0,
);
if (missing.length > 0) {
  console.error(`missing: ${missing.map(([program]) => program).join(', ')}`);
  console.error(`On Debian: apt-get install ${missing.map(([, name]) => name).join(' ')}`);
  process.exit(1);
}
try {
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  run(
    'openssl',
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    ...subject,
    '-keyout',
    key,
    '-out',
    certificate,
  );
  for (const [what, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok: ${what}`);
    } catch (error) {
      process.exitCode = 1;
      console.error(`FAULT: ${what}: ${(error as Error).message}`);
    }
  }
} finally {
  rmSync(temporary, { recursive: true });
}
