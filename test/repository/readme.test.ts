import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import packageJson from '../../package.json' with { type: 'json' };
import { freePort } from '../harness/free-port.ts';
import { firstTokenOf } from '../harness/program.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const REFERENCE = readDocument('docs/reference.md');
/** The commands of each document in order, one text for each block. */
const BLOCKS = blocksOf(readDocument('README.md'));
const REFERENCE_BLOCKS = blocksOf(REFERENCE);
/** The line of the first start that sends a plant. */
const CURL_LINE = /^ {2}(curl .*)\n/m;
const START = 'npm ci && npm start\n';
const CHECKS = 'npm ci && npm test\n';

/** Stands in the README for the token of the first start. */
const TOKEN_PLACEHOLDER = 'plant_TOKEN';

let checkout: string;
let environment: Record<string, string>;
let started: ChildProcess;
let greeting = '';

// The test uses a copy of the checkout and free ports, because a service may be running on the
// ports of the README.
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
  // A separate process group, so that the signal reaches the service and not only npm.
  started = spawn('npm', ['start'], { cwd: checkout, env: environment, detached: true, stdio: 'pipe' });
  await new Promise<void>((resolve, reject) => {
    started.stderr!.setEncoding('utf8').on('data', text => {
      greeting += text;
      if (CURL_LINE.test(greeting)) resolve();
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

test('the README begins with the start and contains the checks', () => {
  assert.equal(BLOCKS[0], START);
  assert.ok(BLOCKS.includes(CHECKS));
});

test('the README is short', () => {
  const text = readDocument('README.md');
  assert.ok(text.split('\n').length <= 111);
  assert.ok(text.split(/\s+/).length <= 900);
});

test('the documents give a supervisor the command that npm start runs', () => {
  for (const document of [REFERENCE, readDocument('docs/operate/backup.md')])
    assert.ok(document.includes(`node_modules/.bin/${packageJson.scripts.start}`));
});

test('the curl line that the first start prints works when pasted', () => {
  const output = paste(CURL_LINE.exec(greeting)![1]!);
  assert.match(output, /^HTTP\/1\.1 200 /);
  assert.match(output, /^Plant-Id: 9007199254740993\r?$/im);
  assert.match(output, /\{"name":"Monstera deliciosa","tag":"houseplant"\}$/);
});

test('the commands of the README work in their order, with the token of the first start', () => {
  const commands = commandsOf(BLOCKS);
  assert.equal(commands.split(TOKEN_PLACEHOLDER).length, 2);
  const output = paste(commands.replace(TOKEN_PLACEHOLDER, firstTokenOf(greeting)));
  assert.match(output, /^Plant-Id: 9007199254740993\r?$/im);
  // The curl line of the first start has created the plant.
  assert.match(output, /^Plant-Outcome: unchanged\r?$/im);
  assert.match(output, /2,257 created, 0 unchanged, 0 revised, 0 rejected/);
  assert.match(output, /^plant 9007199254740993$/m);

  const trees = readDocument('examples/us-trees.csv');
  const exported = readFileSync(join(checkout, 'plants.csv'), 'utf8');
  assert.equal(exported, `${trees}9007199254740993,Monstera deliciosa,houseplant\n`);
});

test('the commands of the reference work in their order, after those of the README', () => {
  const output = paste(`export PLANT_STORE_TOKEN=${firstTokenOf(greeting)}\n${commandsOf(REFERENCE_BLOCKS)}`);
  assert.match(output, /^nursery-app +\S+ +\S+ +valid/m);
  assert.match(output, /^created plant 9223372036854775807, revision 1: /m);
  const history = readFileSync(join(checkout, 'history.jsonl'), 'utf8').trimEnd().split('\n');
  assert.equal(history.length, 2_259);
});

function readDocument(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function blocksOf(document: string): string[] {
  return [...document.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!);
}

/** The blocks that a reader runs while the service runs. */
function commandsOf(blocks: readonly string[]): string {
  return blocks.filter(block => block !== START && block !== CHECKS).join('');
}

/** Runs commands as a reader pastes them, and stops at the first that fails. */
function paste(commands: string): string {
  const script = commands.replaceAll('127.0.0.1:8080', environment.PLANT_STORE_LISTEN!);
  return execFileSync('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: checkout,
    env: environment,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/**
 * Creates a small `curl` on a machine without one.
 *
 * @returns its folder, or an empty text where curl is installed
 */
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
      fetch(positionals[0], { method: 'POST', body: values.d, headers: values.H.map(line => line.split(': ')) }).then(async response => {
        console.log('HTTP/1.1 ' + response.status + ' ' + response.statusText);
        for (const [name, value] of response.headers) console.log(name + ': ' + value);
        process.stdout.write('\\n' + (await response.text()));
      });`;
    writeFileSync(program, source);
    chmodSync(program, 0o755);
    return folder;
  }
}
