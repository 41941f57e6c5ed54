import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import packageJson from '../../package.json' with { type: 'json' };
import { EXIT_MS } from '../../src/cli/serve.ts';
import { BODY_MAX_BYTES, REQUEST_TIMEOUT_MS } from '../../src/core/contract/limits.ts';
import { COMMANDS } from '../../src/main.ts';
import { READINESS_TIMEOUT_MS } from '../../src/operate/health/store-state.ts';
import { HEADERS_TIMEOUT_MS, KEEP_ALIVE_MS } from '../../src/server/timeouts.ts';

const UNIT = 'plant-store.service';
const MANIFEST = 'kubernetes.yaml';
const FILES = [UNIT, 'plant-store-postgresql.conf', 'compose.yaml', 'kubernetes.md', 'README.md'];

function pathOf(file: string): string {
  return fileURLToPath(new URL(`../../deploy/${file}`, import.meta.url));
}

/** @returns what the group of a pattern captures, for each match in a file; at least one */
function found(file: string, pattern: RegExp): string[] {
  const matches = readFileSync(pathOf(file), 'utf8').matchAll(new RegExp(pattern, 'gm'));
  const values = [...matches].map(([, value]) => value!);
  assert.ok(values.length > 0, `${file} has no ${pattern}`);
  return values;
}

test('the files name what exists', async () => {
  const commands = await Promise.all(Object.values(COMMANDS).map(load => load()));
  const options = commands.flatMap(each => [each, ...each.commands]).flatMap(each => each.options);
  const variables = options.map(each => each.envVar);
  const { version } = packageJson;
  const names: [what: string, files: string[], RegExp, exists: (name: string) => boolean][] = [
    ['settings', FILES, /\b(PLANT_STORE_\w+)/, name => variables.includes(name)],
    ['commands', [UNIT], /bin\/plant-store ([a-z]+)/, name => Object.hasOwn(COMMANDS, name)],
    ['commands', ['compose.yaml'], /"plant-store", "([a-z]+)"/, name => Object.hasOwn(COMMANDS, name)],
    ['mounted files', ['compose.yaml'], /^ +- (\.[^:]+):/, path => existsSync(pathOf(path))],
    ['the version', ['compose.yaml', MANIFEST], /image: \S+\/plant-store:(.+)/, tag => tag === version],
  ];
  for (const [what, files, pattern, exists] of names)
    for (const file of files)
      for (const name of found(file, pattern)) assert.ok(exists(name), `${what} in ${file}: ${name}`);
});

test('limits in the files fit those of the service', () => {
  const endsInTime = (seconds: number) => seconds * 1_000 > EXIT_MS;
  const isShorterThanKeepAlive = (seconds: number) => seconds * 1_000 < KEEP_ALIVE_MS;
  const preStop = Number(found(MANIFEST, /preStop: \{ sleep: \{ seconds: (\d+) /)[0]);
  const limits: [file: string, RegExp, fits: (value: number) => boolean][] = [
    [UNIT, /^TimeoutStopSec=(\d+)$/, endsInTime],
    ['compose.yaml', /stop_grace_period: (\d+)s$/, endsInTime],
    [MANIFEST, /terminationGracePeriodSeconds: (\d+)$/, seconds => endsInTime(seconds - preStop)],
    [
      MANIFEST,
      /\/readyz,.*\n.*\n +timeoutSeconds: (\d+)$/,
      seconds => seconds * 1_000 > READINESS_TIMEOUT_MS,
    ],
    ['nginx.conf', /client_max_body_size (\d+)m;/, mebibytes => mebibytes * 1024 ** 2 === BODY_MAX_BYTES],
    ['nginx.conf', /client_header_timeout (\d+)s;/, seconds => seconds * 1_000 === HEADERS_TIMEOUT_MS],
    ['nginx.conf', /client_body_timeout (\d+)s;/, seconds => seconds * 1_000 === REQUEST_TIMEOUT_MS],
    ['nginx.conf', /keepalive 64;\n(?: +#.*\n)+ +keepalive_timeout (\d+)s;/, isShorterThanKeepAlive],
    ['Caddyfile', /\tkeepalive (\d+)s$/, isShorterThanKeepAlive],
    ['Caddyfile', /health_timeout (\d+)s$/, seconds => seconds * 1_000 > READINESS_TIMEOUT_MS],
    ['haproxy.cfg', /timeout check (\d+)s$/, seconds => seconds * 1_000 > READINESS_TIMEOUT_MS],
    ['haproxy.cfg', /timeout http-request (\d+)s$/, seconds => seconds * 1_000 === REQUEST_TIMEOUT_MS],
    ['haproxy.cfg', /timeout http-keep-alive (\d+)s$/, isShorterThanKeepAlive],
  ];
  for (const [file, pattern, fits] of limits)
    for (const text of found(file, pattern)) assert.ok(fits(Number(text)), `${file}: ${pattern}: ${text}`);
});
