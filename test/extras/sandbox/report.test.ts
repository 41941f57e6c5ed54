import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sandboxFilesOf } from '../../../src/extras/sandbox/sandbox-files.ts';
import { commandProcess } from '../../harness/command-lines.ts';
import { assertFailed, startServe } from '../../harness/program.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

const DOCUMENT = readFileSync(new URL('../../../docs/sandbox.md', import.meta.url), 'utf8');
const DATABASE = 'sqlite:./sandbox/plant-store.db';
const commands = commandProcess();

/** A sandbox with functions for its clients and its report. */
async function startSandbox() {
  const cwd = testFolder();
  const serve = await startServe(DATABASE, [], { command: 'sandbox', cwd });
  const run = (...args: string[]) => commands.run({ args: [...args, '--database', DATABASE], cwd });
  const tokenFor = async (label: string, ...args: string[]) =>
    (await run('token', 'create', label, ...args)).stdout.trimEnd();
  /** Sends a body. @returns the status, or 'lost' without a whole response */
  const sender =
    (token: string) =>
    async (Prefer: string, body: object | string, signal?: AbortSignal): Promise<number | 'lost'> => {
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Prefer };
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      try {
        const request = { method: 'POST', headers, body: text, ...(signal && { signal }) };
        const response = await fetch(`${serve.url}/plants`, request);
        await response.text();
        return response.status;
      } catch {
        return 'lost';
      }
    };
  const { requests } = sandboxFilesOf(join(cwd, 'sandbox/plant-store.db'));
  /** The lines of `--json`, each as its token, faults, verdict and ids. */
  const judged = async () =>
    (await run('sandbox', 'report', '--json')).stdout
      .trim()
      .split('\n')
      .map(line => {
        const { token, asked, verdict, ids } = JSON.parse(line);
        return [token, asked, verdict, ids.join()].join('; ');
      });
  return { serve, run, tokenFor, sender, requests, judged };
}

/** Without durations. */
function timeless(text: string): string {
  return text.replaceAll(/[0-9.]+ m?s later/g, 'SOON later');
}

/** Sends a body in each step, and expects these statuses. */
async function expectSteps(
  send: (prefer: string, body: object | string) => Promise<number | 'lost'>,
  steps: [prefer: string, body: object | string, status: number | 'lost'][],
): Promise<void> {
  for (const [index, [prefer, body, status]] of steps.entries())
    assert.equal(await send(prefer, body), status, `step ${index}`);
}

test('the report finds the faults of a wrong client, blames no right one, and begins again', async () => {
  const { serve, run, sender } = await startSandbox();
  await using _serve = serve;
  const send = sender(serve.token);
  const [busy, final, half] = ['code=503, times=1', 'code=400', 'lose=half, times=1'];
  const [unanswered, lost] = ['lose=response, times=1', 'lose=request, times=1'];
  const plant = (id: number, name = `Plant ${id}`) => ({ id, name });
  const documented = (exitCode: number, { stdout, ...report }: Awaited<ReturnType<typeof run>>) => {
    assert.equal(report.exitCode, exitCode);
    assert.ok(timeless(DOCUMENT).includes(timeless(`${stdout}${report.stderr}`)), stdout);
  };

  assertFailed(await run('sandbox', 'report'), /recorded no plant/);
  assert.equal(await send(busy, plant(1)), 503);
  await sleep(1000);
  await expectSteps(send, [
    [busy, plant(1), 200],
    [half, plant(2), 'lost'],
    [half, plant(2), 200],
    [final, plant(3), 400],
    [unanswered, plant(4), 'lost'],
    ['', plant(4), 200],
    [lost, plant(5), 'lost'],
    [lost, plant(5), 200],
  ]);
  documented(0, await run('sandbox', 'report'));

  const reset = await run('sandbox', 'report', '--reset');
  assert.deepEqual([reset.exitCode, reset.stdout, reset.stderr], [0, '', 'forgot 9 requests\n']);
  assertFailed(await run('sandbox', 'report'), /recorded no plant/);
  await expectSteps(send, [
    // The reset lets faults happen again.
    [busy, plant(1), 503],
    [busy, plant(1), 200],
    [half, plant(2), 'lost'],
    [final, plant(3), 400],
    [final, plant(3), 400],
    [unanswered, plant(4), 'lost'],
    ['', plant(104, 'Plant 4'), 200],
    [lost, plant(5), 'lost'],
    [lost, plant(5, 'plant 5'), 200],
  ]);
  documented(1, await run('sandbox', 'report'));
});

test('each token has its own verdicts, which depend on what the client could know', async () => {
  const { serve, run, tokenFor, sender, requests, judged } = await startSandbox();
  await using _serve = serve;
  const right = sender(await tokenFor('right', '--prefer', 'lose=response'));
  const send = sender(serve.token);
  await expectSteps(right, [
    // The fault never ends.
    ['', { id: 1, name: 'A' }, 'lost'],
    ['', { id: 1, name: 'A' }, 'lost'],
    // The same content as that of a plant that was sent again.
    ['', { id: 2, name: 'A' }, 'lost'],
    ['', { id: 2, name: 'A' }, 'lost'],
    // The other client sends the same plants with the same faults.
    ['code=50304', { id: 3, name: 'A' }, 503],
    ['lose=half, times=1', { id: 12, name: 'K' }, 'lost'],
    ['lose=half, times=1', { id: 12, name: 'K' }, 200],
    ['delay=0.1', { id: 4, name: 'A' }, 200],
  ]);
  await expectSteps(send, [
    // Corrections after a final error, a new revision after a 200, and other plants with equal names.
    ['code=415', { id: 1, name: 'A' }, 415],
    ['', { id: 1, name: 'B' }, 200],
    ['', { id: 1, name: 'C' }, 200],
    ['', { id: 2, name: 'C' }, 200],
    // 50304 is a final 503.
    ['code=50304', { id: 3, name: 'A' }, 503],
    ['code=50304', { id: 3, name: 'A' }, 503],
    ['code=50301, times=2', { id: 4, name: 'D' }, 503],
    ['code=50301, times=2', { id: 4, name: 'D', tag: 'x' }, 503],
    ['code=50301, times=2', { id: 4, name: 'D', tag: 'x' }, 200],
    ['code=408, times=1', { id: 5, name: 'E' }, 408],
    ['', '{"id":5,"name":', 400],
    ['code=500, times=1', { id: 6, name: 'F' }, 500],
    // Nothing of id 6 was stored.
    ['', { id: 7, name: 'F' }, 200],
    ['lose=request', { id: 11, name: 'J' }, 'lost'],
    // A client that chooses an id for each attempt.
    ['lose=half, times=1', { id: 12, name: 'K' }, 'lost'],
    ['lose=half, times=1', { id: 13, name: 'K' }, 'lost'],
  ]);
  // A client with a timeout, which sends one plant again and another one with other content.
  const slow = 'delay=2, times=1';
  const leaving = new AbortController();
  const left = [8, 9].map(id => send(slow, { id, name: 'G' }, leaving.signal));
  const isSlow = (line: { kind: string; asked?: string }) => line.kind === 'request' && line.asked === slow;
  await until('the requests have arrived', () => requests.read().filter(isSlow).length === left.length);
  leaving.abort();
  assert.deepEqual(await Promise.all(left), ['lost', 'lost']);
  await expectSteps(send, [
    [slow, { id: 8, name: 'G' }, 200],
    [slow, { id: 9, name: 'H' }, 200],
    // Its response comes after those that nobody waits for.
    [slow, { id: 10, name: 'I' }, 200],
  ]);
  assert.deepEqual(await judged(), [
    'right; lose=response; ok; 1,2',
    'right; code=50304; ok; 3',
    'right; lose=half, times=1; ok; 12',
    'right; delay=0.1; ok; 4',
    'first; code=415; ok; 1',
    'first; ; ok; 1,1,2,7',
    'first; code=50304; retried a final error; 3',
    'first; code=50301, times=2; sent again with other content; 4',
    'first; code=50301, times=2; ignored Retry-After; 4',
    'first; code=408, times=1; sent again with other content; 5',
    'first; code=500, times=1; sent again under another id; 6',
    'first; lose=request; gave up; 11',
    'first; lose=half, times=1; stored twice under another id; 12',
    'first; lose=half, times=1; gave up; 13',
    'first; delay=2, times=1; sent again with other content; 9',
    'first; delay=2, times=1; ok; 8,10',
  ]);
  const report = timeless((await run('sandbox', 'report')).stdout);
  assert.match(report, /with another tag/);
  assert.match(report, /id 4: 200, after waiting [0-9]+ ms$/m);
  assert.match(report, /id 8: stored, but the client had left; SOON later 200$/m);
});

test('faults happen again after a reset, also when a response or an invalid plant is recorded first', async () => {
  const { serve, run, sender, requests, judged } = await startSandbox();
  await using _serve = serve;
  const send = sender(serve.token);
  const [busy, slow] = ['code=503, times=1', 'delay=2, times=1'];
  const plant = (id: number) => ({ id, name: `Plant ${id}` });
  assert.equal(await send(busy, plant(1)), 503);
  const inFlight = send(slow, plant(2));
  await until('the request has arrived', () => requests.read().some(line => 'id' in line && line.id === '2'));
  await run('sandbox', 'report', '--reset');
  assert.equal(await inFlight, 200);
  await expectSteps(send, [
    [busy, plant(1), 503],
    [busy, { id: '1' }, 400],
  ]);
  await run('sandbox', 'report', '--reset');
  await expectSteps(send, [
    [busy, { id: '1' }, 400],
    [busy, plant(1), 503],
  ]);
  assert.deepEqual(await judged(), ['first; code=503, times=1; gave up; 1']);
});

test('the report blames no client for what it could not know when it sent a plant twice at once', async () => {
  const { serve, sender, requests, judged } = await startSandbox();
  await using _serve = serve;
  const send = sender(serve.token);
  const arrived = (count: number) =>
    until('the requests have arrived', () => {
      return requests.read().filter(({ kind }) => kind === 'request').length === count;
    });
  const [slow, final, busy] = ['delay=2', 'code=400, delay=1', 'code=503, delay=1'];
  const leaving = new AbortController();
  const first = send(slow, { id: 1, name: 'A' });
  await arrived(1);
  const second = send(slow, { id: 1, name: 'A' }, leaving.signal);
  await arrived(2);
  assert.equal(await first, 200);
  leaving.abort();
  assert.equal(await second, 'lost');
  for (const [index, prefer] of [final, busy].entries()) {
    const plant = { id: index + 2, name: prefer };
    const attempt = send(prefer, plant);
    await arrived(2 * index + 3);
    await Promise.all([attempt, send(prefer, plant)]);
  }
  assert.deepEqual(await judged(), [
    `first; ${slow}; ok; 1`,
    `first; ${final}; ok; 2`,
    `first; ${busy}; ok; 3`,
  ]);
});
