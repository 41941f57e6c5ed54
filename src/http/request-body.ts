import type { IncomingMessage, ServerResponse } from 'node:http';
import { SHORT_BODY_BYTES_MAX } from './limits.ts';

/** Memory for all long bodies until their responses are sent. The response beyond it is 503. */
export const LONG_BODIES_BYTES_MAX = 64 * 1024 * 1024;

/** The bytes, why they are rejected, or undefined if the request has its response or is cut off. */
type BodyReading = Uint8Array | 'tooLarge' | 'noRoom' | undefined;

/**
 * The body of one request, with its share of the memory for all long bodies. It has the share until
 * the operating system has the response, which is about as long as the body.
 *
 * A short body always fits. A longer one reserves its Content-Length before it is read. A chunked
 * one reserves twice the received bytes as it grows. If that does not fit, it releases all, so that
 * some of many growing bodies fit.
 */
export class RequestBody {
  /** All bodies of the process reserve at most {@link LONG_BODIES_BYTES_MAX}. */
  static #allReservedBytes = 0;
  readonly #bytesMax: number;
  #reservedBytes = 0;
  /** One buffer: a list of a million one-byte chunks would take hundreds of times their memory. */
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Sends 100 (Continue) if expected, then reads. Settles before or when the response closes. */
  read(request: IncomingMessage, serverResponse: ServerResponse): Promise<BodyReading> {
    // In these states, none of the events below is emitted.
    if (request.destroyed || serverResponse.headersSent || serverResponse.destroyed)
      return Promise.resolve(undefined);
    const { 'content-length': length = 0, 'transfer-encoding': coding } = request.headers;
    if (coding === undefined && !this.#reserve(Number(length))) return Promise.resolve('noRoom');
    // RFC 9110 section 10.1.1: an expectation in HTTP/1.0 is ignored.
    if (request.httpVersion !== '1.0' && request.headers.expect?.toLowerCase() === '100-continue')
      serverResponse.writeContinue();
    return new Promise(resolve => {
      const settle = (reading: BodyReading): void => {
        // Further chunks must not reserve memory, which nothing would release.
        request.off('data', add);
        // The caller has the bytes, and drops them before the share is released.
        this.#buffer = Buffer.alloc(0);
        resolve(reading);
      };
      const release = (reading?: 'tooLarge' | 'noRoom'): void => {
        // The memory is released at once, since other bodies may grow before the promise settles.
        RequestBody.#allReservedBytes -= this.#reservedBytes;
        this.#reservedBytes = 0;
        settle(reading);
      };
      const add = (chunk: Buffer): void => {
        const fault = this.#add(chunk);
        if (fault !== undefined) release(fault);
      };
      request.on('data', add);
      request.on('end', () => settle(this.#buffer.subarray(0, this.#length)));
      // A request has no `end` if it is cut off, or has its response before it is complete.
      request.on('close', () => request.readableEnded || release());
      serverResponse.on('close', () => release());
    });
  }

  #add(chunk: Buffer): 'tooLarge' | 'noRoom' | undefined {
    const length = this.#length + chunk.length;
    if (length > this.#bytesMax) return 'tooLarge';
    const isOverReserved = length > Math.max(this.#reservedBytes, SHORT_BODY_BYTES_MAX);
    // Doubling bounds how often each byte is copied, for chunks of any size.
    const neededBytes = Math.min(length * 2, this.#bytesMax);
    if (isOverReserved && !this.#reserve(neededBytes)) return 'noRoom';
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
    if (RequestBody.#allReservedBytes + moreBytes > LONG_BODIES_BYTES_MAX) return false;
    RequestBody.#allReservedBytes += moreBytes;
    this.#reservedBytes = bytes;
    return true;
  }
}
