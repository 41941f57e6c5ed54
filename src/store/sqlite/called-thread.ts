import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  Worker,
  workerData,
} from 'node:worker_threads';
import { StoreDamaged, StoreRejected, StoreUnavailable } from '../plant-store.ts';
import { StoreFileReplaced, unavailable } from './database.ts';

/** The class of an error is lost between threads. The first one that fits names it. */
const ERROR_CLASSES = [StoreRejected, StoreFileReplaced, StoreDamaged, StoreUnavailable];

/** A called thread runs its event loop at this interval. */
const EVENT_LOOP_INTERVAL_MS = 1_000;
/** Indexes of {@link Channel.counters}. */
const CALLS = 0;
const REPLIES = 1;

type Reply<Result> = { result: Result } | { errorClass: number; message: string };

/** One side of the channel between two threads. */
interface Channel {
  port: MessagePort;
  /** How many messages were sent in each direction. A receiver sleeps until its one changes. */
  counters: Int32Array<SharedArrayBuffer>;
}

interface RunningThread<Result> extends Channel {
  worker: Worker;
  /** The calls without a reply, in their order. */
  calls: PromiseWithResolvers<Result>[];
}

/**
 * Calls a thread, which replies in the order of the calls. The first call starts the thread. When
 * it dies, its calls fail, and the next call starts another thread.
 */
export class CalledThread<Call, Result> {
  readonly #name: string;
  readonly #program: URL;
  readonly #data: unknown;
  #running: RunningThread<Result> | undefined;
  #closing: Promise<void> | undefined;

  /** The program calls {@link replyToCalls}, and gets the data as its `workerData`. */
  constructor(name: string, program: URL, data: unknown) {
    this.#name = name;
    this.#program = program;
    this.#data = data;
  }

  /** @throws {StoreRejected} @throws {StoreUnavailable} also when the thread cannot run */
  call(call: Call): Promise<Result> {
    if (this.#closing !== undefined)
      return Promise.reject(new StoreUnavailable(`the ${this.#name} thread is closed`));
    const reply = Promise.withResolvers<Result>();
    try {
      this.#running ??= this.#start();
      post(this.#running, CALLS, call);
      this.#running.calls.push(reply);
    } catch (cause) {
      reply.reject(new StoreUnavailable(`the ${this.#name} thread cannot be started`, { cause }));
    }
    return reply.promise;
  }

  /** Blocks this thread until the next reply. Otherwise an event brings it, which takes longer. */
  blockUntilReply(timeoutMs: number): void {
    if (this.#running === undefined) return;
    const received = receive(this.#running, REPLIES, timeoutMs);
    if (received !== undefined) settleCall(this.#running, received.message);
  }

  /**
   * Ends the thread if it runs. Then its calls fail. A later call starts another thread.
   *
   * @param last a last call, which is made after the others, and before the thread ends
   */
  async end(last?: Call): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    const ended = last === undefined ? undefined : this.call(last);
    this.#running = undefined;
    try {
      await ended;
    } finally {
      // First, because a thread that is terminated within a call may reply with any error.
      failCalls(running, `the ${this.#name} thread is closed`);
      await running.worker.terminate();
    }
  }

  /** As `end`, but later calls fail: they must not open the files again. */
  close(last?: Call): Promise<void> {
    this.#closing ??= this.end(last);
    return this.#closing;
  }

  #start(): RunningThread<Result> {
    const { port1: port, port2 } = new MessageChannel();
    const counters = new Int32Array(new SharedArrayBuffer(8));
    const channel: Channel = { port: port2, counters };
    const workerData = { channel, data: this.#data };
    const worker = new Worker(this.#program, { workerData, transferList: [port2] });
    const running: RunningThread<Result> = { worker, port, counters, calls: [] };
    port.on('message', (reply: Reply<Result>) => settleCall(running, reply));
    // After an error the `exit` event follows. Until then its successor may already have calls.
    const died = (cause?: unknown): void => {
      if (this.#running === running) this.#running = undefined;
      failCalls(running, `the ${this.#name} thread died`, cause);
    };
    worker.on('error', died);
    worker.on('exit', () => died());
    return running;
  }
}

function settleCall<Result>({ calls }: RunningThread<Result>, reply: Reply<Result>): void {
  const call = calls.shift();
  // `end` and the `error` event may precede the last replies. Their calls have failed then.
  if (call === undefined) return;
  if ('result' in reply) call.resolve(reply.result);
  else call.reject(new ERROR_CLASSES[reply.errorClass]!(reply.message));
}

function failCalls<Result>({ calls }: RunningThread<Result>, message: string, cause?: unknown): void {
  for (const { reject } of calls.splice(0)) reject(new StoreUnavailable(message, { cause }));
}

/** Wakes the receiver if it sleeps. A futex takes less time than an event. */
function post({ port, counters }: Channel, counter: number, message: unknown): void {
  port.postMessage(message);
  Atomics.add(counters, counter, 1);
  Atomics.notify(counters, counter);
}

/**
 * Sleeps until there is a message, and takes it. No wake-up is lost, because the counter is read
 * first: a later message changes it, so the sleep ends at once.
 */
function receive({ port, counters }: Channel, counter: number, timeoutMs: number) {
  for (;;) {
    const count = Atomics.load(counters, counter);
    const received = receiveMessageOnPort(port);
    if (received !== undefined) return received;
    // The message may be one that an event has taken already.
    if (Atomics.wait(counters, counter, count, timeoutMs) === 'timed-out') return undefined;
  }
}

/** The data of the {@link CalledThread} that started this thread. */
export const threadData: unknown = workerData?.data;

/**
 * Makes this thread reply to the calls of a {@link CalledThread}, one at a time.
 *
 * It sleeps outside its event loop. The event loop frees the objects of SQLite that are no longer
 * used.
 */
export function replyToCalls<Call>(resultOf: (call: Call) => unknown): void {
  const { channel } = workerData as { channel: Channel };
  const endsAt = performance.now() + EVENT_LOOP_INTERVAL_MS;
  for (let leftMs = EVENT_LOOP_INTERVAL_MS; leftMs > 0; leftMs = endsAt - performance.now()) {
    const received = receive(channel, CALLS, leftMs);
    if (received !== undefined) post(channel, REPLIES, replyTo(resultOf, received.message));
  }
  setImmediate(() => replyToCalls(resultOf));
}

function replyTo<Call>(resultOf: (call: Call) => unknown, call: Call): Reply<unknown> {
  try {
    return { result: resultOf(call) };
  } catch (error) {
    const reported = unavailable(error);
    const errorClass = ERROR_CLASSES.findIndex(each => reported instanceof each);
    return { errorClass, message: reported.message };
  }
}
