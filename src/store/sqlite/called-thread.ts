import { parentPort, receiveMessageOnPort, Worker, workerData } from 'node:worker_threads';
import { StoreDamaged, StoreRejected, StoreUnavailable } from '../plant-store.ts';
import { StoreFileReplaced, unavailable } from './database.ts';

/** The class of an error is lost between threads. The first one that fits names it. */
const ERROR_CLASSES = [StoreRejected, StoreFileReplaced, StoreDamaged, StoreUnavailable];

/** Interval in which a called thread runs its event loop. */
const EVENT_LOOP_INTERVAL_MS = 1_000;

type Reply<Result> = { result: Result } | { errorClass: number; message: string };

interface RunningThread<Result> {
  worker: Worker;
  /** Counts the calls that were posted. The thread waits for its next value. */
  posted: Int32Array<SharedArrayBuffer>;
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
      Atomics.add(this.#running.posted, 0, 1);
      Atomics.notify(this.#running.posted, 0);
      this.#running.calls.push(reply);
    } catch (cause) {
      reply.reject(new StoreUnavailable(`the ${this.#name} thread cannot be started`, { cause }));
    }
    return reply.promise;
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
    const posted = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(this.#program, { workerData: { posted, data: this.#data } });
    const running: RunningThread<Result> = { worker, posted, calls: [] };
    worker.on('message', (reply: Reply<Result>) => {
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

/** What the creator of this thread has given to its program. */
export const threadData: unknown = workerData?.data;

/**
 * Makes this thread reply to the calls of a {@link CalledThread}, one at a time.
 *
 * The thread waits for calls outside its event loop, because a futex wakes it sooner and with less
 * CPU time. The counter is read before the port: a call that is posted later changes the counter,
 * so the wait for it ends at once. The event loop runs once a second. Then V8 frees the objects of
 * SQLite that nothing refers to.
 */
export function replyToCalls<Call>(resultOf: (call: Call) => unknown): void {
  const port = parentPort!;
  const { posted } = workerData as { posted: Int32Array<SharedArrayBuffer> };
  const endsAt = performance.now() + EVENT_LOOP_INTERVAL_MS;
  for (let leftMs = EVENT_LOOP_INTERVAL_MS; leftMs > 0; leftMs = endsAt - performance.now()) {
    const count = Atomics.load(posted, 0);
    const received = receiveMessageOnPort(port);
    if (received === undefined) Atomics.wait(posted, 0, count, leftMs);
    else port.postMessage(replyTo(resultOf, received.message));
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
