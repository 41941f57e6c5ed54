import type { Socket } from 'node:net';
import type { Clock } from '../core/clock.ts';

/** Most bytes in one write. Short writes show that a slow client still takes something. */
const CHUNK_MAX_BYTES = 64 * 1024;

/** A write that waits until the client has taken all earlier ones. */
type Held =
  | { kind: 'chunk'; bytes: string | Uint8Array; onTaken: (() => void) | undefined }
  | { kind: 'end' };

/**
 * Writes to one client, in order. The client has *taken* bytes when the kernel has accepted them.
 * While it takes nothing, nothing more is given to the socket.
 *
 * | state | event | next state |
 * |---|---|---|
 * | open | write, taken at once | open |
 * | open | write, not taken at once | waiting |
 * | waiting | write or end | waiting, held back |
 * | waiting | taken | waiting with the next chunk; open if nothing is held back; ended |
 * | open | end | ended |
 */
export class Output {
  readonly #socket: Socket;
  readonly #onFree: () => void;
  readonly #clock: Clock;
  #state: { kind: 'open' } | { kind: 'waiting'; sinceMs: number } | { kind: 'ended' } = { kind: 'open' };
  readonly #held: Held[] = [];

  /**
   * @param onFree called when the client has taken everything, except after a write that it took at
   * once
   */
  constructor(socket: Socket, onFree: () => void, clock: Clock) {
    this.#socket = socket;
    this.#onFree = onFree;
    this.#clock = clock;
  }

  get isWaiting(): boolean {
    return this.#state.kind === 'waiting';
  }

  /** When the client last took a write, if it has not taken all; ms, monotonic clock. */
  get waitingSinceMs(): number | undefined {
    return this.#state.kind === 'waiting' ? this.#state.sinceMs : undefined;
  }

  /** @param onTaken is not called if the connection ends before */
  write(bytes: string | Uint8Array, onTaken?: () => void): void {
    if (this.#state.kind === 'open' && isOneChunk(bytes)) {
      this.#writeChunk(bytes, onTaken);
      return;
    }
    const all = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    let start = 0;
    for (; all.length - start > CHUNK_MAX_BYTES; start += CHUNK_MAX_BYTES) {
      const chunk = all.subarray(start, start + CHUNK_MAX_BYTES);
      this.#held.push({ kind: 'chunk', bytes: chunk, onTaken: undefined });
    }
    this.#held.push({ kind: 'chunk', bytes: all.subarray(start), onTaken });
    this.#writeHeld();
  }

  /** Ends our side of the connection when the client has taken everything. */
  end(): void {
    this.#held.push({ kind: 'end' });
    this.#writeHeld();
  }

  #writeChunk(bytes: string | Uint8Array, onTaken: (() => void) | undefined): void {
    this.#socket.write(bytes);
    if (this.#socket.writableLength === 0) {
      onTaken?.();
      return;
    }
    this.#state = { kind: 'waiting', sinceMs: this.#clock.now() };
    // An empty write calls back when the client has taken all before it. A callback for each write
    // would cost more.
    this.#socket.write('', error => {
      if (error) return;
      this.#state = { kind: 'open' };
      onTaken?.();
      this.#writeHeld();
      if (!this.isWaiting) this.#onFree();
    });
  }

  #writeHeld(): void {
    while (this.#state.kind === 'open') {
      const next = this.#held.shift();
      if (next === undefined) return;
      if (next.kind === 'chunk') this.#writeChunk(next.bytes, next.onTaken);
      else {
        this.#state = { kind: 'ended' };
        this.#socket.end();
      }
    }
  }
}

/** Counts the bytes only of a long text. A text has at most three bytes for each UTF-16 unit. */
function isOneChunk(bytes: string | Uint8Array): boolean {
  return bytes.length * 3 <= CHUNK_MAX_BYTES || Buffer.byteLength(bytes) <= CHUNK_MAX_BYTES;
}
