import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import packageJson from '../../package.json' with { type: 'json' };
import { ERRORS } from '../../src/contract/errors.ts';
import { runCommandLines } from '../harness/command-lines.ts';
import { freePort } from '../harness/free-port.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
/** The commands of the README in order, a block each. */
const BLOCKS = [...README.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!);
const START = 'npm ci && npm start\n';
const CHECKS = 'npm ci && npm test\n';

let checkout: string;
let environment: Record<string, string>;
let started: ChildProcess;
let greeting = '';

// Everything happens in a copy of the checkout, with the same packages, on ports of its own: a service of the
// reader's may be running on the ones that the README names.
before(async () => {
  checkout = mkdtempSync(join(tmpdir(), 'plant-store-readme-'));
  for (const part of ['bin', 'src', 'examples', 'package.json'])
    cpSync(join(ROOT, part), join(checkout, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  const listen = `127.0.0.1:${await freePort()}`;
  environment = {
    PATH: [standInForCurl(checkout), dirname(process.execPath), process.env.PATH].join(delimiter),
    HOME: checkout,
    PLANT_STORE_LISTEN: listen,
    PLANT_STORE_OPS: `127.0.0.1:${await freePort()}`,
    PLANT_STORE_URL: `http://${listen}`,
  };
  // A process group of its own, for npm stands between us and the service.
  started = spawn('npm', ['start'], { cwd: checkout, env: environment, detached: true, stdio: 'pipe' });
  await new Promise<void>((resolve, reject) => {
    started.stderr!.setEncoding('utf8').on('data', text => {
      greeting += text;
      if (greeting.includes('Taking plants')) resolve();
    });
    started.on('close', () => reject(new Error(`npm start ended: ${greeting}`)));
  });
});

after(async () => {
  if (started.exitCode === null && started.signalCode === null) {
    process.kill(-started.pid!, 'SIGTERM');
    await once(started, 'close');
  }
  rmSync(checkout, { recursive: true });
});

test('the README begins with the start and names the checks', () => {
  assert.equal(BLOCKS[0], START);
  assert.ok(BLOCKS.includes(CHECKS));
});

test('a supervisor is told to run what npm start runs', () => {
  const backup = readFileSync(join(ROOT, 'docs/operate/backup.md'), 'utf8');
  for (const document of [README, backup])
    assert.ok(document.includes(`node_modules/.bin/${packageJson.scripts.start}`));
});

test('the curl line that the first start prints works when pasted', () => {
  const line = /^ {2}(curl .*)$/m.exec(greeting)?.[1];
  assert.ok(line !== undefined, greeting);
  const output = paste(line);
  assert.match(output, /^HTTP\/1\.1 200 /);
  assert.match(output, /^Plant-Id: 9007199254740993\r?$/im);
  assert.match(output, /\{"name":"Monstera deliciosa","tag":"houseplant"\}$/);
});

test('every command of the README works in its order, as it stands', () => {
  const blocks = BLOCKS.filter(block => block !== START && block !== CHECKS);
  const output = paste(blocks.join(''));
  assert.match(output, /^Plant-Id: 9007199254740993\r?$/im);
  // The line that the start printed has created it before.
  assert.match(output, /^Plant-Outcome: unchanged\r?$/im);
  assert.match(output, /2,257 created, 0 unchanged, 0 revised, 0 rejected/);
  assert.match(output, /^plant 9007199254740993$/m);
  assert.match(output, /^nursery-app +\S+ +\S+ +in force/m);

  const trees = readFileSync(join(ROOT, 'examples/us-trees.csv'), 'utf8');
  const exported = readFileSync(join(checkout, 'plants.csv'), 'utf8');
  const sent =
    '9007199254740993,Monstera deliciosa,houseplant\n9223372036854775807,Ficus lyrata,houseplant\n';
  assert.equal(exported, `${trees}${sent}`);
  const history = readFileSync(join(checkout, 'history.jsonl'), 'utf8').trimEnd().split('\n');
  assert.equal(history.length, 2_259);
});

test('the table of answers has every error of the catalogue, and no other', () => {
  const listed = [...README.matchAll(/^\| ([0-9]{3}) \| ([0-9]{5}) \|/gm)].map(
    ([, status, error]) => `${status} ${error}`,
  );
  const catalogue = Object.values(ERRORS).map(({ status, number }) => `${status} ${number}`);
  assert.deepEqual(listed, catalogue);
});

test('the table of settings has every environment variable, and no other', async () => {
  const names = 'serve add import show export copy backup check'.split(' ');
  const helps = await runCommandLines(
    names.map(name => ({ args: [name, '--help'] })),
    checkout,
  );
  const read = new Set(helps.flatMap(({ stdout }) => stdout.match(/PLANT_STORE_[A-Z_]+/g) ?? []));
  const listed = new Set(README.match(/(?<=^\|.*`)PLANT_STORE_[A-Z_]+(?=`)/gm));
  assert.deepEqual([...listed].sort(), [...read].sort());
});

/** Runs commands as a reader would paste them, and stops at the first that fails. */
function paste(commands: string): string {
  const script = commands.replaceAll('127.0.0.1:8080', environment.PLANT_STORE_LISTEN!);
  return execFileSync('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: checkout,
    env: environment,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** A folder with a `curl` that knows what the README uses of it, for a machine that has none; otherwise an empty name. */
function standInForCurl(folder: string): string {
  try {
    execFileSync('curl', ['--version'], { stdio: 'ignore' });
    return '';
  } catch {
    const program = join(folder, 'curl');
    const source = `#!/usr/bin/env node
      const { values, positionals } = require('node:util').parseArgs({
        allowPositionals: true,
        options: { i: { type: 'boolean', short: 'i' }, H: { type: 'string', short: 'H', multiple: true }, d: { type: 'string', short: 'd' } },
      });
      fetch(positionals[0], { method: 'POST', body: values.d, headers: values.H.map(line => line.split(': ')) }).then(async answer => {
        console.log('HTTP/1.1 ' + answer.status + ' ' + answer.statusText);
        for (const [name, value] of answer.headers) console.log(name + ': ' + value);
        process.stdout.write('\\n' + (await answer.text()));
      });`;
    writeFileSync(program, source);
    chmodSync(program, 0o755);
    return folder;
  }
}
