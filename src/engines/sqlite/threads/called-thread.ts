import { Worker } from 'node:worker_threads';
import { StoreUnavailable } from '../../../core/commit/store-errors.ts';
import type { ThreadStart } from './reply-to-calls.ts';
import { ShortReply } from './short-reply.ts';
import { errorOf, type Reply } from './thread-reply.ts';

/** What the caller needs of a `Worker`. */
export interface CalledWorker {
  on(event: 'message' | 'error' | 'exit', listener: (value: unknown) => void): unknown;
  postMessage(call: unknown): void;
  terminate(): Promise<unknown>;
}

export type StartWorker = (program: URL, options: { workerData: ThreadStart }) => CalledWorker;

const startThread: StartWorker = (program, options) => new Worker(program, options);

interface RunningThread<Result> {
  worker: CalledWorker;
  callCount: ThreadStart['callCount'];
  shortReply: ShortReply;
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
  readonly #startWorker: StartWorker;
  #running: RunningThread<Result> | undefined;
  #closing: Promise<void> | undefined;

  /** The program calls `replyToCalls`, and gets the data as `threadData`. */
  constructor(name: string, program: URL, data: unknown, startWorker = startThread) {
    this.#name = name;
    this.#program = program;
    this.#data = data;
    this.#startWorker = startWorker;
  }

  /** @throws {StoreRejected} @throws {StoreUnavailable} also when the thread cannot be started or called */
  call(call: Call): Promise<Result> {
    if (this.#closing !== undefined)
      return Promise.reject(new StoreUnavailable(`the ${this.#name} thread is closed`));
    const reply = Promise.withResolvers<Result>();
    try {
      this.#running ??= this.#start();
      const { worker, callCount, shortReply, calls } = this.#running;
      shortReply.begin();
      worker.postMessage(call);
      calls.push(reply);
      Atomics.add(callCount, 0, 1);
      Atomics.notify(callCount, 0);
    } catch (cause) {
      reply.reject(new StoreUnavailable(`the ${this.#name} thread cannot be started or called`, { cause }));
    }
    return reply.promise;
  }

  /**
   * Blocks the calling thread until the reply to the only pending call. It does not block if other
   * calls are pending, since the reply to one of them may be an event that is not handled yet.
   *
   * @param timeoutMs after it, or if the reply is long, the reply comes as an event
   */
  awaitReply(timeoutMs: number): void {
    const running = this.#running;
    if (running?.calls.length !== 1) return;
    const result = running.shortReply.wait(timeoutMs);
    if (result !== undefined) settleCall(running, { kind: 'result', result: result as Result });
  }

  /**
   * Ends the thread if it runs. Its pending calls fail. A later call starts another thread.
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
      // The calls fail first: a thread that is terminated during a call may reply with any error.
      failCalls(running, `the ${this.#name} thread is closed`);
      await running.worker.terminate();
    }
  }

  /** Ends the thread like `end`. Later calls fail, because they must not open the files again. */
  close(last?: Call): Promise<void> {
    this.#closing ??= this.end(last);
    return this.#closing;
  }

  #start(): RunningThread<Result> {
    const callCount = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const shortReply = new ShortReply();
    const workerData = { callCount, shortReplyMemory: shortReply.memory, data: this.#data };
    const worker = this.#startWorker(this.#program, { workerData });
    const running: RunningThread<Result> = { worker, callCount, shortReply, calls: [] };
    worker.on('message', reply => settleCall(running, reply as Reply<Result>));
    // The `exit` event follows an `error` event. In between, a new thread may already have calls.
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
  // A call that failed by `end` or an `error` event may still get its reply.
  if (call === undefined) return;
  if (reply.kind === 'result') call.resolve(reply.result);
  else call.reject(errorOf(reply));
}

function failCalls<Result>({ calls }: RunningThread<Result>, message: string, cause?: unknown): void {
  for (const { reject } of calls.splice(0)) reject(new StoreUnavailable(message, { cause }));
}
