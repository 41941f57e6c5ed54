import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, symlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort } from '../harness/free-port.ts';
import { firstTokenOf } from '../harness/program.ts';
import { testFolder } from '../harness/test-folder.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The line of the first start that sends a plant. */
const CURL_COMMAND = /^ +(curl (?:.*\\\n)*.*)\n/m;
const START = 'npm ci && npm start\n';
const CHECKS = 'npm ci && npm test\n';
/** Stands in the README for the token of the first start. */
const TOKEN_PLACEHOLDER = 'plant_TOKEN';

function blocksOf(document: string): string[] {
  const text = readFileSync(join(ROOT, document), 'utf8');
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!);
}

/** The commands that a reader runs while the service runs. */
function commandsOf(document: string): string {
  return blocksOf(document)
    .filter(block => block !== START && block !== CHECKS)
    .join('');
}

const hasCurl = spawnSync('curl', ['--version']).status === 0;
if (!hasCurl) console.error('NOT TESTED HERE: the commands of the README need curl');
else
  test('the commands of the first start, the README and the reference work in this order', async t => {
    // A copy of the checkout and free ports: a service may be running on the ports of the README.
    const checkout = testFolder();
    for (const part of ['bin', 'src', 'tools', 'examples', 'package.json'])
      cpSync(join(ROOT, part), join(checkout, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
    const listen = `127.0.0.1:${await freePort()}`;
    const env: Record<string, string> = {
      PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
      HOME: checkout,
      PLANT_STORE_LISTEN: listen,
      PLANT_STORE_OPS: `127.0.0.1:${await freePort()}`,
      PLANT_STORE_URL: `http://${listen}`,
    };
    // A separate process group, so that the signal reaches the service and not only npm.
    const started = spawn('npm', ['start'], { cwd: checkout, env, detached: true, stdio: 'pipe' });
    t.after(async () => {
      if (started.exitCode !== null || started.signalCode !== null) return;
      process.kill(-started.pid!, 'SIGTERM');
      await once(started, 'close');
    });
    let greeting = '';
    await new Promise<void>((resolve, reject) => {
      started.stderr.setEncoding('utf8').on('data', text => {
        greeting += text;
        if (CURL_COMMAND.test(greeting)) resolve();
      });
      started.on('close', () => reject(new Error(`npm start ended: ${greeting}`)));
    });

    /** Runs commands as a reader pastes them, and stops at the first that fails. */
    const paste = (commands: string): string => {
      // npx takes longer to start than the program.
      const npx = 'npx() { shift; node bin/plant-store.js "$@"; }';
      const script = `${npx}\n${commands.replaceAll('127.0.0.1:8080', listen)}`;
      const options = { cwd: checkout, env, encoding: 'utf8', stdio: 'pipe', input: '' } as const;
      return execFileSync('bash', ['-euo', 'pipefail', '-c', script], options);
    };
    const sent = paste(CURL_COMMAND.exec(greeting)![1]!);
    assert.match(sent, /^HTTP\/1\.1 200 .*^Plant-Id: 9007199254740993\r?$/ims);
    assert.match(sent, /\{"name":"Monstera deliciosa","tag":"houseplant"\}$/);

    const token = firstTokenOf(greeting);
    const blocks = blocksOf('README.md');
    assert.ok(blocks[0] === START && blocks.includes(CHECKS));
    const commands = commandsOf('README.md').split(TOKEN_PLACEHOLDER);
    assert.equal(commands.length, 2);
    const output = paste(commands.join(token));
    // The curl line of the first start has created the plant.
    assert.match(output, /^Plant-Outcome: unchanged\r?$/im);
    assert.match(output, /2,257 created, 0 unchanged, 0 replaced, 0 rejected/);
    assert.match(output, /^plant 9007199254740993$/m);
    const trees = readFileSync(join(ROOT, 'examples/us-trees.csv'), 'utf8');
    const exported = readFileSync(join(checkout, 'plants.csv'), 'utf8');
    assert.equal(exported, `${trees}9007199254740993,Monstera deliciosa,houseplant\n`);

    const reference = paste(`export PLANT_STORE_TOKEN=${token}\n${commandsOf('docs/reference.md')}`);
    assert.match(reference, /^nursery-app +\S+ +\S+ +valid/m);
    assert.match(reference, /^created plant 9223372036854775807, revision 1: /m);
    const history = readFileSync(join(checkout, 'history.jsonl'), 'utf8').trimEnd().split('\n');
    assert.equal(history.length, 2_259);
  });
