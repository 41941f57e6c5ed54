import { SHORT_BODY_MAX_BYTES } from '../core/contract/limits.ts';

/** Memory for all long bodies until their responses are taken. Further long bodies get 503. */
export const LONG_BODIES_MAX_BYTES = 64 * 1024 * 1024;

/** The memory for all long bodies of a server. */
export class LongBodyMemory {
  #reservedBytes = 0;

  /** @returns false if there is no room */
  reserve(bytes: number): boolean {
    if (this.#reservedBytes + bytes > LONG_BODIES_MAX_BYTES) return false;
    this.#reservedBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#reservedBytes -= bytes;
  }
}

/** The share of one body in the memory for long bodies. A short body needs no share. */
export class BodyShare implements Disposable {
  readonly #memory: LongBodyMemory;
  #bytes = 0;

  constructor(memory: LongBodyMemory) {
    this.#memory = memory;
  }

  /** Makes the share large enough for a body of this length. @returns false if there is no room */
  grow(bytes: number): boolean {
    if (bytes <= Math.max(SHORT_BODY_MAX_BYTES, this.#bytes)) return true;
    if (!this.#memory.reserve(bytes - this.#bytes)) return false;
    this.#bytes = bytes;
    return true;
  }

  [Symbol.dispose](): void {
    this.#memory.release(this.#bytes);
    this.#bytes = 0;
  }
}

/**
 * The content of a body as it arrives, in one buffer. A list of a million one-byte chunks would
 * take hundreds of times their memory. The share of the body grows before the buffer does.
 */
export class ReceivedBody {
  readonly #share: BodyShare;
  readonly #bytesMax: number;
  #announced = 0;
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  /** @param bytesMax a longer body is rejected */
  constructor(share: BodyShare, bytesMax: number) {
    this.#share = share;
    this.#bytesMax = bytesMax;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /**
   * Reserves memory for the announced length, before any byte arrives.
   *
   * @returns false if there is no room
   */
  announce(length: number): boolean {
    this.#announced = length;
    return this.#share.grow(length);
  }

  /** @returns why the body is rejected */
  add(part: Buffer): 'tooLarge' | 'noRoom' | undefined {
    const length = this.#length + part.length;
    if (length > this.#bytesMax) return 'tooLarge';
    if (length > this.#buffer.length) {
      // Doubling bounds how often each byte is copied, for chunks of any size.
      const room = Math.max(this.#announced, Math.min(length * 2, this.#bytesMax));
      if (length > SHORT_BODY_MAX_BYTES && !this.#share.grow(room)) return 'noRoom';
      const larger = Buffer.allocUnsafe(room);
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    part.copy(this.#buffer, this.#length);
    this.#length = length;
    return undefined;
  }
}
