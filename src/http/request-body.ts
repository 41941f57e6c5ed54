import type { IncomingMessage, ServerResponse } from 'node:http';
import { ARRIVING_BODIES_BYTES_MAX, SHORT_BODY_BYTES_MAX } from './limits.ts';

/** What all bodies that are arriving have of {@link ARRIVING_BODIES_BYTES_MAX}. */
export interface BodyMemory {
  reservedBytes: number;
}

/**
 * What one body has of that memory; `using` gives it back, where it was not given back before.
 *
 * A short body always has room. A longer one whose head says its length has room for all of it before it is read, or not at
 * all. One in chunks gets more as it grows, and is refused where there is no more; its room goes to the others at once, so
 * that some of many that grow together come through.
 */
export class BodyRoom implements Disposable {
  readonly #memory: BodyMemory;
  #bytes = 0;

  constructor(memory: BodyMemory) {
    this.#memory = memory;
  }

  /** What it has; 0 while it is short. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * @param bytes that the body has
   * @param reserved that it gets where it has outgrown its room
   * @returns whether there is room
   */
  reserve(bytes: number, reserved = bytes): boolean {
    if (bytes <= Math.max(this.#bytes, SHORT_BODY_BYTES_MAX)) return true;
    const moreBytes = reserved - this.#bytes;
    if (this.#memory.reservedBytes + moreBytes > ARRIVING_BODIES_BYTES_MAX) return false;
    this.#memory.reservedBytes += moreBytes;
    this.#bytes = reserved;
    return true;
  }

  [Symbol.dispose](): void {
    this.#memory.reservedBytes -= this.#bytes;
    this.#bytes = 0;
  }
}

const NO_BYTES = Buffer.alloc(0);

/** The bytes, why they are not kept, or undefined when the client went away before the end. */
type BodyReading = Uint8Array | 'tooLarge' | 'noRoom' | undefined;

/**
 * Reads a request body whole. It settles at the latest when the response is over, also one that was over before.
 *
 * @param response to the request
 * @param bytesMax more than this is not kept
 * @param room has room for what the head says; a body in chunks says nothing of its length
 * @returns the reading; `tooLarge` or `noRoom` as soon as it is
 */
export function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  bytesMax: number,
  room: BodyRoom,
): Promise<BodyReading> {
  return new Promise(resolve => {
    /** Where chunks are copied together, or the only one. */
    let body: Buffer = NO_BYTES;
    let length = 0;
    let isOver = false;
    const settle = (reading: BodyReading): void => {
      // What still comes takes no room: nobody would give it back.
      isOver = true;
      resolve(reading);
    };
    // Its events are over, and none would be heard of again.
    if (request.destroyed || response.destroyed) {
      resolve(undefined);
      return;
    }
    request.on('data', (chunk: Buffer) => {
      if (isOver) return;
      const start = length;
      length += chunk.length;
      // Twice as much as is needed, so that each byte is copied a few times at most, however small the chunks.
      if (length > bytesMax || !room.reserve(length, Math.min(length * 2, bytesMax))) {
        body = NO_BYTES;
        // At once, since the bodies of other connections may grow before anybody hears of this.
        room[Symbol.dispose]();
        settle(length > bytesMax ? 'tooLarge' : 'noRoom');
      } else if (start === 0) {
        // Nearly every body is one chunk, which needs no copy.
        body = chunk;
      } else {
        body = withRoom(body, start, length, room);
        chunk.copy(body, start);
      }
    });
    request.on('end', () => settle(body.subarray(0, length)));
    // Behind an end these change nothing. A request that breaks off comes to no end, nor does one that is answered before it
    // was whole, which Node may forget without a word.
    request.on('close', () => settle(undefined));
    response.on('close', () => settle(undefined));
  });
}

/** @returns the length that the header section says; 0 for a body in chunks, which says none */
export function bodyBytesOf({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : 0;
}

/**
 * The chunks of a body are copied together as they come: a client may send a byte in each, and a list of a million
 * buffers takes hundreds of times the memory of what is in them.
 */
function withRoom(body: Buffer, used: number, needed: number, room: BodyRoom): Buffer {
  if (needed <= body.length) return body;
  // The system gives a long buffer only the memory that is written to.
  const larger = Buffer.allocUnsafe(needed > SHORT_BODY_BYTES_MAX ? room.bytes : needed * 2);
  body.copy(larger, 0, 0, used);
  return larger;
}
