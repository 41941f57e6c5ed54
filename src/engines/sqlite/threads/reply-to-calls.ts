import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { ShortReply } from './short-reply.ts';
import { type Reply, replyTo } from './thread-reply.ts';

/** A called thread runs its event loop at this interval. */
const EVENT_LOOP_INTERVAL_MS = 1_000;

/** What a called thread gets at its start, as its `workerData`. */
export interface ThreadStart {
  /** The number of calls so far. A futex wakes the thread sooner than an event does. */
  callCount: Int32Array<SharedArrayBuffer>;
  shortReplyMemory: SharedArrayBuffer;
  data: unknown;
}

/** The data of the caller that started this thread. */
export const threadData: unknown = workerData?.data;

/**
 * Makes this thread reply to the calls of its caller, one at a time.
 *
 * It sleeps outside its event loop, and runs it once a second to free the objects of SQLite that
 * are no longer used. No wake-up is lost: the number of calls is read first, and a later call
 * changes it.
 */
export function replyToCalls<Call>(resultOf: (call: Call) => unknown): void {
  const { callCount, shortReplyMemory } = workerData as ThreadStart;
  const shortReply = new ShortReply(shortReplyMemory);
  const endsAt = performance.now() + EVENT_LOOP_INTERVAL_MS;
  for (let leftMs = EVENT_LOOP_INTERVAL_MS; leftMs > 0; leftMs = endsAt - performance.now()) {
    const count = Atomics.load(callCount, 0);
    const received = receiveMessageOnPort(parentPort!);
    if (received === undefined) Atomics.wait(callCount, 0, count, leftMs);
    else sendReply(shortReply, replyTo(resultOf, received.message), postReply);
  }
  setImmediate(() => replyToCalls(resultOf));
}

function postReply(reply: Reply<unknown>): void {
  parentPort!.postMessage(reply);
}

/** Sends a reply once: in shared memory if the caller waits there, else as a message. */
export function sendReply(
  shortReply: ShortReply,
  reply: Reply<unknown>,
  post: (reply: Reply<unknown>) => void,
): void {
  const result = reply.kind === 'result' ? reply.result : undefined;
  if (!shortReply.put(result)) post(reply);
}
