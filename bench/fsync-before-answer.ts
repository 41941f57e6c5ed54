/**
 * Watches the system calls of a real `serve` and checks the promise of every 200: between the arrival of the
 * request and the first byte of its answer, the writer thread wrote to the write-ahead log and a flush of that file
 * was completed. Plants are sent one after another, so that no flush can count for two of them.
 *
 * Run it with: node bench/fsync-before-answer.ts (Linux, with strace)
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { newPlantJson } from '../src/contract/plant.ts';
import { readGreeting } from '../test/harness/serve-greeting.ts';

const PLANTS = 200;
const PROGRAM = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url));
const SYSTEM_CALLS = 'read,recvfrom,write,writev,sendto,pwrite64,fsync,fdatasync';

if (spawnSync('strace', ['-V']).status !== 0) {
  console.error(
    'strace is missing, so nothing was checked; install it (Debian: apt-get install strace) and run this again',
  );
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), 'plant-store-strace-'));
const trace = join(folder, 'trace.txt');
try {
  const mainThread = await sendPlantsUnderTrace();
  const answers = readAnswers(readFileSync(trace, 'utf8').split('\n'), mainThread);
  const flushed = answers.filter(Boolean).length;
  console.log(`${flushed} of ${answers.length} answers had a completed flush before them`);
  process.exitCode = answers.length === PLANTS && flushed === PLANTS ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true });
}

/** @returns the id of the service's main thread */
async function sendPlantsUnderTrace(): Promise<number> {
  // With -D the process started here is the service and not strace; -y shows the file behind each descriptor.
  const strace = ['-D', '-f', '-y', '-s', '16', '-e', `trace=${SYSTEM_CALLS}`, '-o', trace];
  const serve = ['serve', '--database', `sqlite:${join(folder, 'plants.db')}`];
  const args = [
    ...strace,
    process.execPath,
    PROGRAM,
    ...serve,
    '--listen',
    '127.0.0.1:0',
    '--ops',
    '127.0.0.1:0',
  ];
  const child = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const { url, token } = await readGreeting(child);
  for (let id = 1n; id <= PLANTS; id++) {
    const answer = await fetch(`${url}/plants`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: newPlantJson({ id, name: 'Ficus lyrata' }),
    });
    if (answer.status !== 200) throw new Error(`plant ${id} was answered ${answer.status}`);
    await answer.arrayBuffer();
  }
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
  // The tracer is a process of its own and writes the end of the trace behind the end of the service.
  while (!new RegExp(`^${child.pid} .*exited with`, 'm').test(readFileSync(trace, 'utf8'))) await wait(20);
  return child.pid!;
}

/**
 * Follows one request after another through the trace, whose lines are in the order in which things happened. A call
 * that others overtake has one line for its beginning and one for its end: a flush counts at its end, an answer at
 * its beginning.
 *
 * @returns for each answer of 200 whether the log was written to and then flushed since its request arrived
 */
function readAnswers(lines: string[], mainThread: number): boolean[] {
  const answers: boolean[] = [];
  const begun = new Map<string, string>();
  let state: 'arrived' | 'written' | 'flushed' = 'arrived';
  for (const line of lines) {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const [, end] = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest) ?? [];
    const call = end === undefined ? rest : begun.get(thread) + end;
    const isUnfinished = rest.endsWith('<unfinished ...>');
    if (isUnfinished) begun.set(thread, rest.replace('<unfinished ...>', ''));

    if (end === undefined && /^(?:write|writev|sendto)\(.*"HTTP\/1\.1 200/.test(call)) {
      answers.push(state === 'flushed');
    }
    if (isUnfinished) continue;
    const isWriter = Number(thread) !== mainThread;
    if (/^(?:read|recvfrom)\(.*"POST \/plants/.test(call)) state = 'arrived';
    else if (isWriter && /^pwrite64\(\d+<[^>]*-wal>/.test(call)) state = 'written';
    else if (isWriter && state === 'written' && /^f(?:data)?sync\(\d+<[^>]*-wal>\) *= 0$/.test(call))
      state = 'flushed';
  }
  return answers;
}
