import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { StoreInternalError, StoreUnavailable } from '../../../../src/core/commit/store-errors.ts';
import { CalledThread } from '../../../../src/engines/sqlite/threads/called-thread.ts';

type Reply = [call: string, threadId: number];

const FILE = new URL('../../../../src/engines/sqlite/threads/reply-to-calls.ts', import.meta.url);
const PROGRAM = `
  import { threadId } from 'node:worker_threads';
  import { replyToCalls } from '${FILE}';
  replyToCalls(call => {
    if (call === 'throw') throw new Error('thrown');
    if (call === 'wait') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    if (call === 'exit') process.exit();
    if (call === 'die') return () => 'a result that cannot be copied to another thread';
    return [call, threadId];
  });`;

/**
 * Once it has found no call, it sets `gate[0]`, and waits for `gate[1]`. Then it goes on. It replies
 * how its first sleep ended.
 */
const GATED_PROGRAM = `
  import { syncBuiltinESMExports } from 'node:module';
  import workers from 'node:worker_threads';
  import { replyToCalls, threadData as gate } from '${FILE}';
  const { wait } = Atomics;
  const { receiveMessageOnPort } = workers;
  let ended;
  Atomics.wait = (...sleep) => (ended ??= wait(...sleep));
  workers.receiveMessageOnPort = port => {
    const received = receiveMessageOnPort(port);
    if (received === undefined && Atomics.exchange(gate, 0, 1) === 0) {
      Atomics.notify(gate, 0);
      wait(gate, 1, 0);
    }
    return received;
  };
  syncBuiltinESMExports();
  replyToCalls(() => ended);`;

/**
 * Returns each call. A late one first sets `gate[0]`, and waits for `gate[1]`. An awaited one first
 * waits until its caller sleeps.
 */
const ECHO_PROGRAM = `
  import { workerData } from 'node:worker_threads';
  import { replyToCalls, threadData as gate } from '${FILE}';
  const words = new Int32Array(workerData.shortReplyMemory);
  const PENDING = 0;
  replyToCalls(call => {
    while (call.startsWith('awaited') && Atomics.load(words, 0) === PENDING);
    if (call === 'late') {
      Atomics.store(gate, 0, 1);
      Atomics.notify(gate, 0);
      Atomics.wait(gate, 1, 0);
    }
    return call === 'awaited object' ? { call } : call;
  });`;

const threadOf = (program: string) => new CalledThread<string, Reply>('test', new URL(program), undefined);

const open = (gate: Int32Array) => {
  Atomics.store(gate, 1, 1);
  Atomics.notify(gate, 1);
};

const moduleOf = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`;

suite('a called thread', { timeout: 60_000 }, () => {
  const newThread = (t: TestContext) => {
    const thread = threadOf(moduleOf(PROGRAM));
    t.after(() => thread.close());
    return thread;
  };

  const newEcho = (t: TestContext) => {
    const gate = new Int32Array(new SharedArrayBuffer(8));
    const thread = new CalledThread<string, unknown>('test', new URL(moduleOf(ECHO_PROGRAM)), gate);
    t.after(() => thread.close());
    return { thread, gate };
  };

  test('replies in the order of the calls, also when one of them throws', async t => {
    const thread = newThread(t);
    const calls = ['one', 'throw', 'two'].map(call => thread.call(call));
    await assert.rejects(calls[1]!, StoreInternalError);
    const [one, two] = await Promise.all([calls[0]!, calls[2]!]);
    assert.deepEqual([one[0], two[0], one[1]], ['one', 'two', two[1]]);
    await thread.end();
    await thread.end();
    assert.equal((await thread.call('three'))[0], 'three');
    const endless = thread.call('wait');
    await Promise.all([assert.rejects(endless, /the test thread is closed/), thread.close()]);
    await assert.rejects(thread.call('four'), /the test thread is closed/);
  });

  for (const cause of ['exit', 'die'])
    test(`fails the calls in flight when it ends, and none of its successor: ${cause}`, async t => {
      const thread = newThread(t);
      const [, first] = await thread.call('one');
      thread.call(cause).catch(() => undefined);
      await assert.rejects(thread.call('in flight'), StoreUnavailable);
      // By now the first thread has reported its error, but may not have ended.
      const [call, second] = await thread.call('two');
      assert.equal(call, 'two');
      assert.notEqual(second, first);
      assert.deepEqual(await thread.call('three'), ['three', second]);
    });

  test('ignores a reply that its `error` event has overtaken', async t => {
    const started = once(process, 'worker');
    const call = newThread(t).call('one');
    const [worker] = (await started) as [Worker];
    t.after(() => worker.terminate());
    const replied = new Promise(resolve => worker.once('message', resolve));
    worker.emit('error', new Error('died'));
    await assert.rejects(call, /the test thread died/);
    await replied;
  });

  test('blocks its caller until a short reply or a timeout', async t => {
    const { thread, gate } = newEcho(t);
    await thread.call('start');
    const long = `awaited ${'long'.repeat(1_000)}`;
    for (const [call, blockMs, isSettled] of [
      ['awaited', 60_000, true],
      ['late', 1, false],
      ['awaited', 60_000, true],
      [long, 60_000, false],
      ['awaited object', 60_000, false],
      ['short', 0, false],
    ] as const) {
      gate.fill(0);
      const reply = thread.call(call);
      if (blockMs > 0) thread.awaitReply(blockMs);
      // `race` returns the first promise that is settled already.
      assert.equal((await Promise.race([reply, 'pending'])) !== 'pending', isSettled, call);
      open(gate);
      assert.deepEqual(await reply, call === 'awaited object' ? { call } : call);
    }
  });

  test('settles calls in order when the event of an earlier reply is not handled yet', async t => {
    const { thread, gate } = newEcho(t);
    const replies = [thread.call('one'), thread.call('late')];
    // By now the first reply has been sent.
    Atomics.wait(gate, 0, 0);
    open(gate);
    replies.push(thread.call('three'));
    thread.awaitReply(60_000);
    assert.deepEqual(await Promise.all(replies), ['one', 'late', 'three']);
  });

  test('does not sleep when a call comes after it has found none', async t => {
    const gate = new Int32Array(new SharedArrayBuffer(8));
    const thread = new CalledThread<string, string | undefined>(
      'test',
      new URL(moduleOf(GATED_PROGRAM)),
      gate,
    );
    t.after(() => thread.close());
    assert.equal(await thread.call('one'), undefined);
    await Atomics.waitAsync(gate, 0, 0).value;
    const late = thread.call('two');
    open(gate);
    assert.equal(await late, 'not-equal');
  });

  test('that cannot be started fails each call', async () => {
    const thread = threadOf('https://127.0.0.1/threads-have-no-such-programs.js');
    for (const call of ['one', 'two'])
      await assert.rejects(thread.call(call), /the test thread cannot be started or called/);
    await thread.end();
  });
});
