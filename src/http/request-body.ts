import type { IncomingMessage, ServerResponse } from 'node:http';
import { ARRIVING_BODIES_BYTES_MAX, SHORT_BODY_BYTES_MAX } from './limits.ts';

/** The bytes, why they are rejected, or undefined when nobody waits for a response any more. */
type BodyReading = Uint8Array | 'tooLarge' | 'noRoom' | undefined;

/**
 * The body of one request, and its part of the shared memory, which `using` gives back.
 *
 * A short body always has room. A longer one reserves its Content-Length before it is read. A chunked one reserves twice
 * what has arrived, as it grows; when there is no room, it gives all back at once, so that some of many that grow together
 * are read.
 */
export class RequestBody implements Disposable {
  /** What all bodies of the process have of {@link ARRIVING_BODIES_BYTES_MAX}. */
  static #allReservedBytes = 0;
  readonly #bytesMax: number;
  #reservedBytes = 0;
  /** Chunks are copied together: in a list, a million chunks of one byte take hundreds of times their memory. */
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  /** @param bytesMax a longer body is rejected */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Invites the body if the client waits for that, and reads it. Settles at the latest when the response is over. */
  read(request: IncomingMessage, serverResponse: ServerResponse): Promise<BodyReading> {
    // The events below would not come.
    if (request.destroyed || serverResponse.headersSent || serverResponse.destroyed)
      return Promise.resolve(undefined);
    // A chunked body says no length.
    const { 'content-length': length = 0, 'transfer-encoding': coding } = request.headers;
    if (coding === undefined && !this.#reserve(Number(length))) return Promise.resolve('noRoom');
    // RFC 9110 section 10.1.1: the expectation of an HTTP/1.0 client is ignored.
    if (request.httpVersion !== '1.0' && request.headers.expect?.toLowerCase() === '100-continue')
      serverResponse.writeContinue();
    return new Promise(resolve => {
      const settle = (reading: BodyReading): void => {
        // What still comes takes no memory: nobody would give it back.
        request.off('data', add);
        resolve(reading);
      };
      const add = (chunk: Buffer): void => {
        const fault = this.#add(chunk);
        if (fault === undefined) return;
        // At once, since other bodies may grow before anybody hears of this.
        this[Symbol.dispose]();
        settle(fault);
      };
      request.on('data', add);
      request.on('end', () => settle(this.#buffer.subarray(0, this.#length)));
      // A request that breaks off has no end, nor has one that is answered before it is whole.
      request.on('close', () => settle(undefined));
      serverResponse.on('close', () => settle(undefined));
    });
  }

  [Symbol.dispose](): void {
    RequestBody.#allReservedBytes -= this.#reservedBytes;
    this.#reservedBytes = 0;
    this.#buffer = Buffer.alloc(0);
  }

  #add(chunk: Buffer): 'tooLarge' | 'noRoom' | undefined {
    const length = this.#length + chunk.length;
    if (length > this.#bytesMax) return 'tooLarge';
    const hasOutgrown = length > Math.max(this.#reservedBytes, SHORT_BODY_BYTES_MAX);
    // Twice as much as is needed, so that each byte is copied a few times at most, however small the chunks.
    const neededBytes = Math.min(length * 2, this.#bytesMax);
    if (hasOutgrown && !this.#reserve(neededBytes)) return 'noRoom';
    if (length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#reservedBytes, neededBytes));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    chunk.copy(this.#buffer, this.#length);
    this.#length = length;
    return undefined;
  }

  #reserve(bytes: number): boolean {
    if (bytes <= SHORT_BODY_BYTES_MAX) return true;
    const moreBytes = bytes - this.#reservedBytes;
    if (RequestBody.#allReservedBytes + moreBytes > ARRIVING_BODIES_BYTES_MAX) return false;
    RequestBody.#allReservedBytes += moreBytes;
    this.#reservedBytes = bytes;
    return true;
  }
}
