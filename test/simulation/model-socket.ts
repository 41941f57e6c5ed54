import { EventEmitter } from 'node:events';
import type { Clock } from '../../src/core/clock.ts';
import type { Scheduler } from './scheduler.ts';

/** As libuv reads. */
const READ_MAX_BYTES = 64 * 1024;
/** Time from the arrival of bytes until the event loop reads them, or until it writes further ones. */
const KERNEL_MAX_MS = 3;
/** How far the clock of a busy process may be ahead of the events. */
const AHEAD_MAX_MS = 20;
const STEPS_PER_MS = 10;

/**
 * The clock of a process, which computes between events, and its event loop: in each iteration, it
 * reads what has arrived, and then calls back.
 */
export class ModelLoop implements Clock {
  readonly #scheduler: Scheduler;
  /** How often the process computes for up to a ms between two readings of the clock. */
  readonly #busyPercent: number;
  readonly #sockets = new Set<ModelSocket>();
  #callbacks: (() => void)[] = [];
  #isIterating = false;
  #nowMs = 0;

  constructor(scheduler: Scheduler, busyPercent: number) {
    this.#scheduler = scheduler;
    this.#busyPercent = busyPercent;
  }

  now(): number {
    const now = this.#scheduler.now();
    this.#nowMs = Math.max(this.#nowMs, now);
    const computes = this.#nowMs < now + AHEAD_MAX_MS && this.#scheduler.happens(this.#busyPercent);
    if (computes) this.#nowMs += (1 + this.#scheduler.random(STEPS_PER_MS)) / STEPS_PER_MS;
    return this.#nowMs;
  }

  wallNow(): number {
    return this.#scheduler.wallNow();
  }

  setTimer(callback: () => void, delayMs: number): Disposable {
    return this.#scheduler.setTimer(callback, delayMs);
  }

  nextIteration(callback: () => void): void {
    this.#callbacks.push(callback);
    if (!this.#isIterating) this.#iterate();
  }

  add(socket: ModelSocket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #iterate(): void {
    this.#isIterating = true;
    this.#scheduler.nextIteration(() => this.#poll());
  }

  /** Reads one socket after the other. Microtasks run in between. */
  #poll(): void {
    const socket = this.#sockets.values().find(({ isReadable }) => isReadable);
    if (socket === undefined) this.#callBack(this.#callbacks.splice(0));
    else {
      socket.read();
      this.#scheduler.nextIteration(() => this.#poll());
    }
  }

  #callBack(callbacks: (() => void)[]): void {
    callbacks.shift()?.();
    if (callbacks.length > 0) this.#scheduler.nextIteration(() => this.#callBack(callbacks));
    else if (this.#callbacks.length > 0) this.#iterate();
    else this.#isIterating = false;
  }
}

/** What the client of a socket notices. */
export interface Peer {
  /** The kernel has accepted bytes for the client, which may take them. */
  onSent(bytes: Buffer): void;
  /** The other side has ended, after all bytes. */
  onEnd(): void;
  /** Bytes that were not taken are lost. */
  onReset(): void;
}

interface Write {
  /** What the kernel has not accepted. */
  rest: Buffer;
  length: number;
  callback: ((error?: Error) => void) | undefined;
}

/**
 * A socket as `node:net` has it, as far as the service uses it, and the kernel behind it.
 *
 * A paused socket sees no bytes, no end and no reset. What the kernel does not accept at once makes
 * `writableLength`. After `destroy`, a callback comes with an error, or never.
 */
export class ModelSocket extends EventEmitter {
  readonly #scheduler: Scheduler;
  readonly #peer: Peer;
  /** Bytes that the kernel accepts for a client that takes nothing. */
  readonly #roomBytes: number;
  destroyed = false;
  readableEnded = false;
  writableLength = 0;
  #isPaused = false;
  pauses = 0;
  #arrived: Buffer[] = [];
  #hasClientEnded = false;
  #isReset = false;
  #isReadScheduled = false;
  #isWriteScheduled = false;
  #writes: Write[] = [];
  #untakenBytes = 0;
  #isEnding = false;
  /** When the kernel last accepted bytes, or got some after it had accepted all. */
  acceptedAtMs: number;
  /** When the write began that the kernel has not accepted whole. */
  pieceAtMs: number;
  /** When the kernel last had accepted everything, and got more. */
  busySinceMs = 0;
  finishedAtMs: number | undefined;
  /** Whether it was destroyed while the kernel had not accepted everything. */
  stuckAtClose = false;
  /** What the service must not do. */
  fault: string | undefined;

  constructor(scheduler: Scheduler, peer: Peer, roomBytes: number) {
    super();
    this.#scheduler = scheduler;
    this.#peer = peer;
    this.#roomBytes = roomBytes;
    this.acceptedAtMs = scheduler.now();
    this.pieceAtMs = scheduler.now();
  }

  // What the service calls.

  isPaused(): boolean {
    return this.#isPaused;
  }

  pause(): this {
    this.pauses++;
    this.#isPaused = true;
    return this;
  }

  resume(): this {
    this.#isPaused = false;
    this.#scheduleRead();
    return this;
  }

  write(data: string | Uint8Array, callback?: (error?: Error) => void): boolean {
    if (this.#isEnding) this.fault ??= 'bytes are written after the end';
    if (this.destroyed) this.#fail(callback);
    else {
      const rest = Buffer.from(data as string);
      this.writableLength += data.length;
      this.#writes.push({ rest, length: data.length, callback });
      if (this.#writes.length === 1) this.#begin();
      if (this.#isReset) this.#scheduler.later(0, KERNEL_MAX_MS, () => this.#breakDown());
    }
    return this.writableLength === 0;
  }

  end(): this {
    this.#isEnding = true;
    if (this.#writes.length === 0) this.#finish();
    return this;
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this;
    this.destroyed = true;
    this.stuckAtClose = this.#writes.length > 0;
    for (const { callback } of this.#writes.splice(0)) this.#fail(callback);
    // A kernel with unread bytes resets the connection.
    if (this.#arrived.length > 0) this.#peer.onReset();
    else if (this.finishedAtMs === undefined) this.#peer.onEnd();
    this.#scheduler.later(0, 1, () => {
      if (error) this.emit('error', error);
      this.emit('close');
    });
    return this;
  }

  // What the client does.

  /** @returns false if the service has closed the connection */
  arrive(bytes: Buffer): boolean {
    if (this.destroyed) return false;
    this.#arrived.push(bytes);
    this.#scheduleRead();
    return true;
  }

  endByClient(): void {
    this.#hasClientEnded = true;
    this.#scheduleRead();
  }

  resetByClient(): void {
    this.#isReset = true;
    if (this.#scheduler.happens(50)) this.#arrived = [];
    this.#scheduleRead();
    if (this.#writes.length > 0) this.#scheduler.later(0, KERNEL_MAX_MS, () => this.#breakDown());
  }

  /** @returns how many bytes the client can take now */
  get untakenBytes(): number {
    return this.#untakenBytes;
  }

  take(bytes: number): void {
    this.#untakenBytes -= bytes;
    if (this.#isWriteScheduled || this.#writes.length === 0) return;
    this.#isWriteScheduled = true;
    this.#scheduler.later(0, KERNEL_MAX_MS, () => {
      this.#isWriteScheduled = false;
      this.#goOnWriting(false);
    });
  }

  // What the event loop does.

  get isReadable(): boolean {
    const hasEvent = this.#arrived.length > 0 || this.#isReset || this.#hasClientEnded;
    return hasEvent && !this.destroyed && !this.#isPaused && !this.readableEnded;
  }

  read(): void {
    if (this.#arrived.length > 0) {
      const bytes = this.#arrived.length === 1 ? this.#arrived[0]! : Buffer.concat(this.#arrived);
      this.#arrived = bytes.length > READ_MAX_BYTES ? [bytes.subarray(READ_MAX_BYTES)] : [];
      this.emit('data', bytes.subarray(0, READ_MAX_BYTES));
    } else if (this.#isReset) this.#breakDown();
    else {
      this.readableEnded = true;
      this.emit('end');
      if (this.finishedAtMs !== undefined) this.destroy();
    }
    if (this.isReadable) this.#scheduleRead();
  }

  #scheduleRead(): void {
    if (this.#isReadScheduled || !this.isReadable) return;
    this.#isReadScheduled = true;
    this.#scheduler.later(0, KERNEL_MAX_MS, () => {
      this.#isReadScheduled = false;
      if (this.isReadable) this.read();
    });
  }

  #breakDown(): void {
    this.destroy(Object.assign(new Error('the simulated client resets'), { code: 'ECONNRESET' }));
  }

  #begin(): void {
    this.busySinceMs = this.#scheduler.now();
    this.acceptedAtMs = this.#scheduler.now();
    this.pieceAtMs = this.#scheduler.now();
    this.#goOnWriting(true);
  }

  #goOnWriting(isSynchronous: boolean): void {
    while (!this.destroyed && !this.#isReset && this.#writes.length > 0) {
      const write = this.#writes[0]!;
      const bytes = write.rest.subarray(0, this.#roomBytes - this.#untakenBytes);
      if (bytes.length > 0) {
        this.#untakenBytes += bytes.length;
        this.acceptedAtMs = this.#scheduler.now();
        this.#peer.onSent(bytes);
        write.rest = write.rest.subarray(bytes.length);
      }
      if (write.rest.length > 0) return;
      this.#writes.shift();
      this.pieceAtMs = this.#scheduler.now();
      this.writableLength -= write.length;
      const { callback } = write;
      if (callback && isSynchronous) process.nextTick(callback);
      else callback?.();
    }
    if (this.#isEnding && this.#writes.length === 0) this.#finish();
  }

  #finish(): void {
    if (this.destroyed || this.finishedAtMs !== undefined) return;
    this.finishedAtMs = this.#scheduler.now();
    if (!this.#isReset) this.#peer.onEnd();
    if (this.readableEnded) this.destroy();
  }

  #fail(callback: Write['callback']): void {
    if (callback && this.#scheduler.happens(50)) process.nextTick(callback, new Error('destroyed'));
  }
}
