/**
 * Checks the files of this folder with the programs that read them, and sends plants through nginx
 * and Caddy to a service. It needs Debian packages, and names those that are missing.
 *
 *   npm run check:deploy
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
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
  caddy: 'caddy',
  curl: 'curl',
  'docker-compose': 'docker-compose',
  nginx: 'nginx',
  promtool: 'prometheus',
  'systemd-analyze': 'systemd',
};
const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const CERTIFICATES = fileURLToPath(new URL('../test/harness/postgres-tls', import.meta.url));
// Debian has nginx in a folder that is not on the path of every user.
process.env.PATH += ':/usr/sbin';
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

/** Configures nginx for a service, and returns the arguments of nginx. */
function nginx(port: number, service: string): string[] {
  const site = changed('nginx.conf', {
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
    'listen [::]:443 ssl;': '',
    'server 127.0.0.1:8080': `server ${service}`,
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
}

/** Configures Caddy for a service, and returns the arguments of Caddy. */
function caddy(port: number, service: string): string[] {
  const certificate = `tls ${CERTIFICATES}/server.pem ${CERTIFICATES}/server-key.pem`;
  const site = changed('Caddyfile', {
    'plants.example {': `https://localhost:${port} {\n\tbind 127.0.0.1\n\t${certificate}`,
    'https:// {': `https://:${port} {\n\tbind 127.0.0.1`,
    'reverse_proxy 127.0.0.1:8080': `reverse_proxy ${service}`,
  });
  const file = join(temporary, 'Caddyfile');
  writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`);
  const options = ['--adapter', 'caddyfile', '--config', file];
  run('caddy', ['validate', ...options]);
  return ['run', ...options];
}

async function checkProxy(proxy: typeof nginx): Promise<void> {
  const program = proxy.name;
  await using service = await startServe(`sqlite:${join(temporary, `${program}.db`)}`);
  const port = await freePort();
  const child = spawn(program, proxy(port, new URL(service.url).host), {
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

async function sendThrough(proxy: string, service: ServeProcess): Promise<void> {
  const options = ['-sSi', '--http1.1', '--cacert', `${CERTIFICATES}/ca.pem`, '-H', 'Expect:'];
  const credential = ['-H', `Authorization: Bearer ${service.token}`];
  const get = (path: string): string => run('curl', [...options, ...credential, proxy + path]);
  const json = ['-H', 'Content-Type: application/json', '--data-binary', '@-', `${proxy}/plants`];
  const send = (nameLength: number): string => {
    const body = `{"id":9223372036854775807,"name":"${'x'.repeat(nameLength)}"}`;
    return run('curl', [...options, ...credential, ...json], body);
  };
  await until('the proxy responds', () => spawnSync('curl', ['-sk', proxy]).status === 0);
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
  'plants through nginx': () => checkProxy(nginx),
  'plants through Caddy': () => checkProxy(caddy),
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
