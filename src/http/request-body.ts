import type { IncomingMessage } from 'node:http';
import { ARRIVING_BODIES_BYTES_MAX, SHORT_BODY_BYTES_MAX } from '../contract/limits.ts';

/**
 * The memory of all bodies that are arriving. A short one always has room. A longer one has it for all of its length before
 * it is read, or not at all: of many that begin together some come through, where otherwise all might break off.
 */
export class BodyMemory {
  #reservedBytes = 0;

  /** @returns whether there was room for so much more */
  reserve(bytes: number): boolean {
    if (this.#reservedBytes + bytes > ARRIVING_BODIES_BYTES_MAX) return false;
    this.#reservedBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#reservedBytes -= bytes;
  }
}

/** What one body has of the memory; `using` gives it back. */
export class BodyRoom implements Disposable {
  readonly #memory: BodyMemory;
  #bytes = 0;

  constructor(memory: BodyMemory) {
    this.#memory = memory;
  }

  /** @returns whether there is room for a body of this length */
  reserve(bytes: number): boolean {
    if (bytes <= Math.max(this.#bytes, SHORT_BODY_BYTES_MAX)) return true;
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
 * Reads a request body whole.
 *
 * @param bytesMax more than this is not kept
 * @param room has room for what the head says; a body in chunks says nothing of its length, and may get as long as it can
 * @returns the bytes; `tooLarge` or `noRoom` as soon as it is; undefined when the client went away before the end
 */
export function readBody(
  request: IncomingMessage,
  bytesMax: number,
  room: BodyRoom,
): Promise<Uint8Array | 'tooLarge' | 'noRoom' | undefined> {
  const lengthMax = bodyBytesOf(request) ?? bytesMax;
  return new Promise(settle => {
    let body: Buffer | undefined;
    let length = 0;
    let isRefused = false;
    const refuse = (why: 'tooLarge' | 'noRoom'): void => {
      isRefused = true;
      body = undefined;
      settle(why);
    };
    request.on('data', (chunk: Buffer) => {
      if (isRefused) return;
      const start = length;
      length += chunk.length;
      if (length > bytesMax) {
        refuse('tooLarge');
      } else if (length > SHORT_BODY_BYTES_MAX && !room.reserve(lengthMax)) {
        refuse('noRoom');
      } else if (body === undefined) {
        // Nearly every body is one chunk, which needs no copy.
        body = chunk;
      } else {
        body = withRoom(body, start, length, lengthMax);
        chunk.copy(body, start);
      }
    });
    request.on('end', () => settle(body?.subarray(0, length) ?? new Uint8Array()));
    // Settling again changes nothing: after an end these tell nothing new.
    request.on('error', () => settle(undefined));
    request.on('close', () => settle(undefined));
  });
}

/** @returns the length that the head of a request says; undefined for a body in chunks */
export function bodyBytesOf({ headers }: IncomingMessage): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  return Number(headers['content-length'] ?? 0);
}

/**
 * The chunks of a body are copied together as they come: a client may send a byte in each, and a list of a million
 * buffers takes hundreds of times the memory of what is in them.
 */
function withRoom(body: Buffer, used: number, needed: number, lengthMax: number): Buffer {
  if (needed <= body.length) return body;
  // Of a long one the system gives what is written to.
  const larger = Buffer.allocUnsafe(needed > SHORT_BODY_BYTES_MAX ? lengthMax : needed * 2);
  body.copy(larger, 0, 0, used);
  return larger;
}
