import { parentPort, receiveMessageOnPort, Worker, workerData } from 'node:worker_threads';
import {
  StoreDamaged,
  StoreInternalError,
  StoreRejected,
  StoreUnavailable,
} from '../../core/commit/store-errors.ts';
import { adviceOf } from '../../core/problem.ts';
import { StoreFileReplaced, unavailable } from './sqlite-errors.ts';

/** A message loses the class of an error, so a reply has the index of the first class that fits. */
const ERROR_CLASSES = [StoreRejected, StoreFileReplaced, StoreDamaged, StoreUnavailable];

/** A called thread runs its event loop at this interval. */
const EVENT_LOOP_INTERVAL_MS = 1_000;
/** Longest reply in shared memory, in bytes. The results of one plant take about 60. */
const SHORT_REPLY_BYTES_MAX = 256;
/** Indexes of {@link SharedMemory.words}. The length of the short reply is in bytes. */
const CALLS = 0;
export const REPLY = 1;
const SHORT_REPLY_BYTES = 2;
// The states of the word `REPLY` follow. The caller may stop waiting while the thread replies, so
// each of them leaves `AWAITED` by an atomic exchange.
/** The reply to the last call comes as a message. */
export const AS_MESSAGE = 0;
/** The caller sleeps. The thread writes a short reply into the memory, or sends a message. */
export const AWAITED = 1;
/** A short reply is in the memory. The caller takes it when it wakes up. */
const IN_MEMORY = 2;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export type Reply<Result> =
  | { kind: 'result'; result: Result }
  | { kind: 'storeError'; errorClass: number; fault: string; advice: string | undefined }
  /** The copy of an error keeps its stack, and its class if the class is built into JavaScript. */
  | { kind: 'internalError'; cause: unknown };

/** Memory of both threads. A futex in it wakes a thread faster than an event does. */
export interface SharedMemory {
  words: Int32Array<SharedArrayBuffer>;
  shortReply: Uint8Array<SharedArrayBuffer>;
}

/** What the caller needs of a `Worker`. */
export interface CalledWorker {
  on(event: 'message' | 'error' | 'exit', listener: (value: unknown) => void): unknown;
  postMessage(call: unknown): void;
  terminate(): Promise<unknown>;
}

export type StartWorker = (
  program: URL,
  options: { workerData: { shared: SharedMemory; data: unknown } },
) => CalledWorker;

const startThread: StartWorker = (program, options) => new Worker(program, options);

interface RunningThread<Result> extends SharedMemory {
  worker: CalledWorker;
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

  /** The program calls {@link replyToCalls}, and gets the data as {@link threadData}. */
  constructor(name: string, program: URL, data: unknown, startWorker = startThread) {
    this.#name = name;
    this.#program = program;
    this.#data = data;
    this.#startWorker = startWorker;
  }

  /**
   * @param blockMs longest time that the calling thread blocks until the reply. It does not block
   *   while another call is pending, whose reply may be an event that is not handled yet
   * @throws {StoreRejected} @throws {StoreUnavailable} also when the thread cannot run
   */
  call(call: Call, blockMs = 0): Promise<Result> {
    if (this.#closing !== undefined)
      return Promise.reject(new StoreUnavailable(`the ${this.#name} thread is closed`));
    const reply = Promise.withResolvers<Result>();
    try {
      this.#running ??= this.#start();
      const { worker, words, calls } = this.#running;
      const blocks = blockMs > 0 && calls.length === 0;
      Atomics.store(words, REPLY, blocks ? AWAITED : AS_MESSAGE);
      worker.postMessage(call);
      calls.push(reply);
      Atomics.add(words, CALLS, 1);
      Atomics.notify(words, CALLS);
      if (blocks) awaitShortReply(this.#running, blockMs);
    } catch (cause) {
      reply.reject(new StoreUnavailable(`the ${this.#name} thread cannot be started`, { cause }));
    }
    return reply.promise;
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

  /** As `end`, but later calls fail: they must not open the files again. */
  close(last?: Call): Promise<void> {
    this.#closing ??= this.end(last);
    return this.#closing;
  }

  #start(): RunningThread<Result> {
    const words = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT));
    const shortReply = new Uint8Array(new SharedArrayBuffer(SHORT_REPLY_BYTES_MAX));
    const shared: SharedMemory = { words, shortReply };
    const worker = this.#startWorker(this.#program, { workerData: { shared, data: this.#data } });
    const running: RunningThread<Result> = { ...shared, worker, calls: [] };
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

/** Sleeps until the reply is in the shared memory, or will come as a message. */
function awaitShortReply<Result>(running: RunningThread<Result>, timeoutMs: number): void {
  const { words, shortReply } = running;
  Atomics.wait(words, REPLY, AWAITED, timeoutMs);
  if (Atomics.exchange(words, REPLY, AS_MESSAGE) !== IN_MEMORY) return;
  const bytes = Atomics.load(words, SHORT_REPLY_BYTES);
  const result = decoder.decode(shortReply.subarray(0, bytes)) as Result;
  settleCall(running, { kind: 'result', result });
}

function settleCall<Result>({ calls }: RunningThread<Result>, reply: Reply<Result>): void {
  const call = calls.shift();
  // A call that failed by `end` or an `error` event may still get its reply.
  if (call === undefined) return;
  if (reply.kind === 'result') call.resolve(reply.result);
  else if (reply.kind === 'internalError') call.reject(new StoreInternalError(reply.cause));
  else call.reject(new ERROR_CLASSES[reply.errorClass]!(reply.fault, { advice: reply.advice }));
}

function failCalls<Result>({ calls }: RunningThread<Result>, message: string, cause?: unknown): void {
  for (const { reject } of calls.splice(0)) reject(new StoreUnavailable(message, { cause }));
}

/** The data of the {@link CalledThread} that started this thread. */
export const threadData: unknown = workerData?.data;

/**
 * Makes this thread reply to the calls of a {@link CalledThread}, one at a time.
 *
 * It sleeps outside its event loop, and runs it once a second to free the objects of SQLite that
 * are no longer used. No wake-up is lost: the number of calls is read first, and a later call
 * changes it.
 */
export function replyToCalls<Call>(resultOf: (call: Call) => unknown): void {
  const { shared } = workerData as { shared: SharedMemory };
  const endsAt = performance.now() + EVENT_LOOP_INTERVAL_MS;
  for (let leftMs = EVENT_LOOP_INTERVAL_MS; leftMs > 0; leftMs = endsAt - performance.now()) {
    const count = Atomics.load(shared.words, CALLS);
    const received = receiveMessageOnPort(parentPort!);
    if (received === undefined) Atomics.wait(shared.words, CALLS, count, leftMs);
    else sendReply(shared, replyTo(resultOf, received.message), postReply);
  }
  setImmediate(() => replyToCalls(resultOf));
}

function postReply(reply: Reply<unknown>): void {
  parentPort!.postMessage(reply);
}

/**
 * Sends a reply once: in shared memory if the caller still waits there, else as a message. The
 * caller may stop waiting at any time, so `compareExchange` decides.
 */
export function sendReply(
  { words, shortReply }: SharedMemory,
  reply: Reply<unknown>,
  post: (reply: Reply<unknown>) => void,
): void {
  const text = reply.kind === 'result' && typeof reply.result === 'string' ? reply.result : undefined;
  const { read, written } = encoder.encodeInto(text ?? '', shortReply);
  const isShort = read === text?.length;
  Atomics.store(words, SHORT_REPLY_BYTES, written);
  const next = isShort ? IN_MEMORY : AS_MESSAGE;
  const isAwaited = Atomics.compareExchange(words, REPLY, AWAITED, next) === AWAITED;
  if (!isShort || !isAwaited) post(reply);
  // The caller may already block for its next call.
  if (isAwaited) Atomics.notify(words, REPLY);
}

export function replyTo<Call>(resultOf: (call: Call) => unknown, call: Call): Reply<unknown> {
  try {
    return { kind: 'result', result: resultOf(call) };
  } catch (error) {
    const reported = unavailable(error);
    if (reported instanceof StoreInternalError) return { kind: 'internalError', cause: reported.cause };
    const errorClass = ERROR_CLASSES.findIndex(each => reported instanceof each);
    return { kind: 'storeError', errorClass, fault: reported.fault, advice: adviceOf(reported) };
  }
}
