import { parentPort, receiveMessageOnPort, Worker, workerData } from 'node:worker_threads';
import { StoreDamaged, StoreRejected, StoreUnavailable } from '../plant-store.ts';
import { StoreFileReplaced, unavailable } from './database.ts';

/** The class of an error is lost between threads. The first one that fits names it. */
const ERROR_CLASSES = [StoreRejected, StoreFileReplaced, StoreDamaged, StoreUnavailable];

/** A called thread runs its event loop at this interval. */
const EVENT_LOOP_INTERVAL_MS = 1_000;
/** The message of {@link announceReply}. */
const REPLY_FOLLOWS = 0;

type Reply<Result> = { result: Result } | { errorClass: number; message: string };

interface RunningThread<Result> {
  worker: Worker;
  /** A counter. The thread sleeps until it changes. */
  wakeUps: Int32Array<SharedArrayBuffer>;
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
      this.#running.worker.postMessage(call);
      this.#running.calls.push(reply);
      this.wake();
    } catch (cause) {
      reply.reject(new StoreUnavailable(`the ${this.#name} thread cannot be started`, { cause }));
    }
    return reply.promise;
  }

  /** Wakes the thread, because a call follows soon. A CPU that sleeps takes a while to wake. */
  wake(): void {
    if (this.#running === undefined) return;
    Atomics.add(this.#running.wakeUps, 0, 1);
    Atomics.notify(this.#running.wakeUps, 0);
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
    const wakeUps = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(this.#program, { workerData: { wakeUps, data: this.#data } });
    const running: RunningThread<Result> = { worker, wakeUps, calls: [] };
    worker.on('message', (reply: Reply<Result> | typeof REPLY_FOLLOWS) => {
      if (reply === REPLY_FOLLOWS) return;
      const call = running.calls.shift();
      // `end` and the `error` event may precede the last replies. Their calls have failed then.
      if (call === undefined) return;
      if ('result' in reply) call.resolve(reply.result);
      else call.reject(new ERROR_CLASSES[reply.errorClass]!(reply.message));
    });
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

function failCalls<Result>({ calls }: RunningThread<Result>, message: string, cause?: unknown): void {
  for (const { reject } of calls.splice(0)) reject(new StoreUnavailable(message, { cause }));
}

/** The data of the {@link CalledThread} that started this thread. */
export const threadData: unknown = workerData?.data;

/**
 * Makes this thread reply to the calls of a {@link CalledThread}, one at a time.
 *
 * It sleeps outside its event loop: a futex costs less than an event. No wake-up is lost, because
 * the counter is read before the calls. A later call changes the counter, so the sleep ends at
 * once. The event loop frees the objects of SQLite that are no longer used.
 */
export function replyToCalls<Call>(resultOf: (call: Call) => unknown): void {
  const { wakeUps } = workerData as Pick<RunningThread<unknown>, 'wakeUps'>;
  const endsAt = performance.now() + EVENT_LOOP_INTERVAL_MS;
  for (let leftMs = EVENT_LOOP_INTERVAL_MS; leftMs > 0; leftMs = endsAt - performance.now()) {
    const count = Atomics.load(wakeUps, 0);
    const received = receiveMessageOnPort(parentPort!);
    if (received === undefined) Atomics.wait(wakeUps, 0, count, leftMs);
    else parentPort!.postMessage(replyTo(resultOf, received.message));
  }
  setImmediate(() => replyToCalls(resultOf));
}

/**
 * Wakes the caller, because the reply follows soon. So what is left to do takes no time: the caller
 * would still be waking up.
 */
export function announceReply(): void {
  parentPort!.postMessage(REPLY_FOLLOWS);
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
