import type { Socket } from 'node:net';
import { ConnectionOracle, type RunState } from './connection-oracle.ts';
import type { Requests, SentRequest } from './connection-requests.ts';
import { type ModelLoop, ModelSocket, type Peer } from './model-socket.ts';
import { count } from './part.ts';
import type { Scheduler } from './scheduler.ts';

/** A request is sent in at most so many chunks, unless they are slow. */
const CHUNKS_MAX = 30;

/** How a client behaves. */
interface Manner {
  isPipelining: boolean;
  /** Longest pause between two chunks, and longest chunk. */
  pauseMsMax: number;
  chunkBytesMax: number;
  /** In percent, for each request: the client pauses within it, or ends its side. */
  stalls: number;
  reads: 'at once' | 'slowly' | 'with stops' | 'never';
  /** What it does after its last request. */
  ending: 'wait' | 'end' | 'reset' | 'empty lines';
  /** When it resets the connection, whatever happens. */
  resetAfterMs: number | undefined;
  endsWithService: boolean;
}

/** @param behaves whether it gives the service no cause to wait */
function drawManner(scheduler: Scheduler, behaves: boolean): Manner {
  if (behaves)
    return {
      isPipelining: scheduler.happens(50),
      pauseMsMax: 20,
      chunkBytesMax: 65_536,
      stalls: 0,
      reads: 'at once',
      ending: scheduler.pick('wait', 'end'),
      resetAfterMs: undefined,
      endsWithService: true,
    };
  return {
    isPipelining: scheduler.happens(50),
    pauseMsMax: scheduler.pick(0, 5, 300, 4_000),
    chunkBytesMax: scheduler.pick(1, 20, 300, 5_000, 65_536),
    stalls: scheduler.pick(0, 0, 30),
    reads: scheduler.pick('at once', 'at once', 'at once', 'slowly', 'with stops', 'never'),
    ending: scheduler.pick('wait', 'wait', 'end', 'end', 'reset', 'empty lines'),
    resetAfterMs: scheduler.happens(15) ? scheduler.random(scheduler.pick(50, 5_000)) : undefined,
    endsWithService: scheduler.happens(60),
  };
}

/** A client on one connection. */
export class Client implements Peer {
  readonly #scheduler: Scheduler;
  readonly #run: RunState;
  readonly #requests: readonly SentRequest[];
  readonly #manner: Manner;
  readonly socket: ModelSocket;
  readonly oracle: ConnectionOracle;
  #fault: unknown;
  /** Whether it sends nothing more. */
  #hasEnded = false;
  #takesNothingUntilMs = 0;
  #isTaking = false;

  constructor(scheduler: Scheduler, loop: ModelLoop, run: RunState, requests: Requests, behaves: boolean) {
    this.#scheduler = scheduler;
    this.#run = run;
    this.#manner = drawManner(scheduler, behaves);
    this.#requests = drawRequests(scheduler, requests, this.#manner);
    const inFlight = { plants: 0, bytes: 0 };
    for (const request of this.#requests) request.inFlight = inFlight;
    const roomBytes = behaves ? 1_000_000 : scheduler.pick(500, 5_000, 100_000, 1_000_000);
    this.socket = new ModelSocket(scheduler, this, roomBytes);
    loop.add(this.socket);
    this.socket.once('close', () => {
      for (const request of this.#requests) request.closedAtMs = scheduler.now();
    });
    this.oracle = new ConnectionOracle(run, () => scheduler.now(), this.#requests, this.socket);
  }

  /** The socket as the service knows it. */
  get accepted(): Socket {
    return this.socket as unknown as Socket;
  }

  check(): void {
    if (this.#fault !== undefined) throw this.#fault;
    this.oracle.check();
  }

  onSent(bytes: Buffer): void {
    try {
      this.oracle.onSent(bytes);
    } catch (cause) {
      // The service would catch it.
      this.#fault ??= cause;
    }
    this.#take();
    if (this.oracle.isEnding) this.onEnd();
  }

  onEnd(): void {
    if (!this.#manner.endsWithService) return;
    this.#scheduler.later(0, 20, () => this.#end());
  }

  onReset(): void {
    this.#hasEnded = true;
  }

  async run(): Promise<void> {
    const { resetAfterMs, ending } = this.#manner;
    const scheduler = this.#scheduler;
    if (resetAfterMs !== undefined) scheduler.later(0, resetAfterMs, () => this.#reset());
    if (scheduler.happens(20)) await scheduler.pause(0, scheduler.pick(1_000, 15_000));
    for (const [index, request] of this.#requests.entries()) {
      if (!this.#manner.isPipelining) await this.#waitFor(() => this.oracle.responses >= index);
      await this.#send(request);
    }
    // As old clients do after a body.
    if (scheduler.happens(15)) this.#deliver(Buffer.from('\r\n'));
    if (ending === 'wait') return;
    let text = '';
    if (ending === 'empty lines')
      while (!this.#hasEnded && scheduler.happens(90)) {
        await scheduler.pause(0, scheduler.pick(100, 8_000, 30_000));
        const isHalf = text.endsWith('\r');
        text = scheduler.pick(...(isHalf ? ['\n', '\n\r'] : ['\r\n', '\r', '\r\n\r']));
        this.#deliver(Buffer.from(text));
      }
    else {
      await scheduler.pause(0, scheduler.pick(0, 50, 5_000));
      if (ending === 'end') this.#end();
      else this.#reset();
    }
  }

  async #send(request: SentRequest): Promise<void> {
    const scheduler = this.#scheduler;
    const { bytes, headersBytes, expectsContinue } = request;
    const { pauseMsMax, chunkBytesMax, stalls } = this.#manner;
    const chunkMax = Math.max(chunkBytesMax, Math.ceil(bytes.length / CHUNKS_MAX));
    const stallAt = scheduler.happens(stalls) ? scheduler.random(bytes.length) : undefined;
    for (let start = 0; start < bytes.length && !this.#hasEnded; ) {
      const headEnd = expectsContinue && start < headersBytes ? headersBytes : bytes.length;
      const isWhole = scheduler.happens(30);
      const next = isWhole ? headEnd : Math.min(headEnd, start + 1 + scheduler.random(chunkMax));
      if (stallAt !== undefined && start <= stallAt && stallAt < next) await this.#stall();
      if (this.#hasEnded) return;
      this.#note(request, next);
      this.#deliver(bytes.subarray(start, next));
      start = next;
      if (start === headersBytes && expectsContinue) await this.#waitForContinue();
      else if (pauseMsMax > 0 && scheduler.happens(70)) await scheduler.pause(0, pauseMsMax);
    }
  }

  async #stall(): Promise<void> {
    if (this.#scheduler.happens(30)) {
      this.#end();
      return;
    }
    count(this.#run.happened, 'a client pauses within a request');
    const ms = this.#scheduler.pick(9_000, 12_000, 20_000);
    await this.#scheduler.pause(this.#scheduler.random(ms), ms);
  }

  async #waitForContinue(): Promise<void> {
    const untilMs = this.#scheduler.now() + this.#scheduler.pick(0, 300, 3_000);
    const { responses } = this.oracle;
    const isOver = (): boolean => this.oracle.hasContinue || this.oracle.responses > responses;
    await this.#waitFor(() => isOver() || this.#scheduler.now() >= untilMs);
  }

  async #waitFor(condition: () => boolean): Promise<void> {
    let pauseMs = 2;
    while (!this.#hasEnded && !this.socket.destroyed && !condition()) {
      await this.#scheduler.pause(pauseMs);
      pauseMs = Math.min(500, 2 * pauseMs);
    }
  }

  #note(request: SentRequest, sentBytes: number): void {
    const now = this.#scheduler.now();
    request.beganAtMs = Math.min(now, request.beganAtMs);
    const isHeadNew = request.headersAtMs === Infinity;
    if (sentBytes >= request.headersBytes) request.headersAtMs = Math.min(now, request.headersAtMs);
    if (sentBytes < request.bytes.length) return;
    request.wholeAtMs = now;
    request.isBodyWithHead = isHeadNew;
  }

  #deliver(bytes: Buffer): void {
    if (this.#hasEnded) return;
    if (this.socket.arrive(bytes)) this.oracle.onArrival();
    else this.#hasEnded = true;
  }

  #end(): void {
    if (this.#hasEnded || this.socket.destroyed) return;
    this.#hasEnded = true;
    this.oracle.onClientEnd();
    this.socket.endByClient();
  }

  #reset(): void {
    if (this.socket.destroyed) return;
    count(this.#run.happened, 'a client resets');
    this.#hasEnded = true;
    this.oracle.isReset = true;
    this.socket.resetByClient();
  }

  /** Takes what the kernel has for it, as its manner is. */
  #take(): void {
    const scheduler = this.#scheduler;
    const { reads } = this.#manner;
    if (this.#isTaking || reads === 'never' || this.oracle.isReset) return;
    this.#isTaking = true;
    const stops = reads === 'with stops' && scheduler.happens(20);
    if (stops) this.#takesNothingUntilMs = scheduler.now() + scheduler.random(scheduler.pick(3_000, 20_000));
    const waitMs = Math.max(0, this.#takesNothingUntilMs - scheduler.now());
    const isSlow = reads === 'slowly';
    scheduler.later(waitMs, waitMs + (isSlow ? 1_000 : 3), () => {
      this.#isTaking = false;
      const { untakenBytes } = this.socket;
      const bytes = isSlow ? Math.min(untakenBytes, 1 + scheduler.random(16_384)) : untakenBytes;
      this.socket.take(bytes);
      if (bytes < untakenBytes) this.#take();
    });
  }
}

function drawRequests(scheduler: Scheduler, requests: Requests, manner: Manner): SentRequest[] {
  if (!manner.isPipelining || !scheduler.happens(6))
    return Array.from({ length: scheduler.random(8) }, () => requests.draw());
  const [length, paddingBytes] = scheduler.pick<[number, number]>(
    [1_100, 0],
    [1_100, 0],
    [30, 14_000],
    [200, 10],
  );
  return [...requests.pipeline(length, paddingBytes), requests.draw()];
}
