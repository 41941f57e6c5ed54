import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { sendPlant, startServe } from './harness/program.ts';
import { testFolder } from './harness/test-folder.ts';
import { until } from './harness/until.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** The documented command. Group `flags` has the flags of Node. */
const COMMAND =
  /^npx node (?<flags>--permission .*?) bin\/plant-store\.js serve --database sqlite:(?<folder>\S+)\/plants\.db$/s;

const [outside, data] = [testFolder(), testFolder()];

/** Attempts of malicious code. Node runs it first in the process and in each thread. */
const INTRUDER = `
  import { spawnSync } from 'node:child_process';
  import fs from 'node:fs';
  import inspector from 'node:inspector';
  import { threadId } from 'node:worker_threads';
  const outside = ${JSON.stringify(outside)};
  const attempts = {
    read: () => fs.readFileSync(outside + '/secret'),
    list: () => fs.readdirSync(outside),
    write: () => fs.writeFileSync(outside + '/written', ''),
    'write into the program': () => fs.appendFileSync(${JSON.stringify(join(ROOT, 'bin/plant-store.js'))}, ''),
    'start a program': () => { const { error } = spawnSync('true'); if (error) throw error; },
    'load native code': () => process.dlopen({ exports: {} }, '/nowhere.node'),
    'open the debugger': () => { inspector.open(0, '127.0.0.1'); inspector.close(); },
  };
  const outcomes = {};
  for (const [what, attempt] of Object.entries(attempts)) {
    try { attempt(); outcomes[what] = 'done'; } catch ({ code }) { outcomes[what] = code; }
  }
  fs.writeFileSync(${JSON.stringify(data)} + '/outcomes-' + threadId + '.json', JSON.stringify(outcomes));`;

test('the command of SECURITY.md gives each thread of the service only the rights that it needs', async () => {
  const blocks = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8').matchAll(/^```sh\n(.*?)\n```$/gms);
  const commands = [...blocks].map(([, block]) => COMMAND.exec(block!.replaceAll(/ \\\n */g, ' ')));
  const { flags, folder } = commands.find(each => each !== null)!.groups!;
  writeFileSync(join(outside, 'secret'), '');
  writeFileSync(join(data, 'intruder.mjs'), INTRUDER);
  await using service = await startServe(`sqlite:${join(data, 'plants.db')}`, [], {
    nodeArgs: flags!.replaceAll(folder!, data).split(' '),
    env: { NODE_OPTIONS: `--import=${pathToFileURL(join(data, 'intruder.mjs'))}` },
    cwd: ROOT,
  });
  assert.equal(await sendPlant(service.url, service.token, 1n), 200);
  const outcomes = () => readdirSync(data).filter(file => file.startsWith('outcomes-'));
  // The main thread, the writer thread, and the thread that flushes the write-ahead log.
  await until('the threads have tried', () => outcomes().length >= 3);
  assert.equal((await service.stop('SIGTERM')).exitCode, 0);
  for (const file of outcomes()) {
    const { 'load native code': native, ...others } = JSON.parse(readFileSync(join(data, file), 'utf8'));
    assert.equal(native, 'ERR_DLOPEN_DISABLED');
    for (const [what, outcome] of Object.entries(others)) assert.equal(outcome, 'ERR_ACCESS_DENIED', what);
  }
});
