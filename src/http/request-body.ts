import type { IncomingMessage, ServerResponse } from 'node:http';
import { SHORT_BODY_BYTES_MAX } from './limits.ts';

/** Memory for all long bodies until their responses are sent. The response beyond it is 503. */
export const LONG_BODIES_BYTES_MAX = 64 * 1024 * 1024;

/** The bytes, why they are rejected, or undefined if the request has its response or is cut off. */
type BodyReading = Uint8Array | 'tooLarge' | 'noRoom' | undefined;

/** All bodies of the process reserve at most {@link LONG_BODIES_BYTES_MAX}. */
let allReservedBytes = 0;

/**
 * Sends 100 (Continue) if it is expected, and reads the body. It settles before or when the
 * response closes.
 *
 * The body has a share of the memory for all long bodies until the operating system has the
 * response. A response is about as long as its body. A short body always fits. A longer one reserves
 * its Content-Length before it is read. A chunked one reserves twice the received bytes as it grows.
 * If that does not fit, it releases all, so that some of many growing bodies fit.
 */
export function readRequestBody(
  request: IncomingMessage,
  serverResponse: ServerResponse,
  bytesMax: number,
): Promise<BodyReading> {
  let reservedBytes = 0;
  const reserve = (bytes: number): boolean => {
    if (bytes <= SHORT_BODY_BYTES_MAX) return true;
    const moreBytes = bytes - reservedBytes;
    if (allReservedBytes + moreBytes > LONG_BODIES_BYTES_MAX) return false;
    allReservedBytes += moreBytes;
    reservedBytes = bytes;
    return true;
  };
  // In these states, none of the events below is emitted.
  if (request.destroyed || serverResponse.headersSent || serverResponse.destroyed)
    return Promise.resolve(undefined);
  const { 'content-length': announced = 0, 'transfer-encoding': coding } = request.headers;
  if (coding === undefined && !reserve(Number(announced))) return Promise.resolve('noRoom');
  // RFC 9110 section 10.1.1: an expectation in HTTP/1.0 is ignored.
  if (request.httpVersion !== '1.0' && request.headers.expect?.toLowerCase() === '100-continue')
    serverResponse.writeContinue();
  /** One buffer: a list of a million one-byte chunks would take hundreds of times their memory. */
  let buffer: Buffer = Buffer.alloc(0);
  let length = 0;
  return new Promise(resolve => {
    const settle = (reading: BodyReading): void => {
      // Further chunks must not reserve memory, which nothing would release.
      request.off('data', add);
      // The caller has the bytes, and drops them before the share is released.
      buffer = Buffer.alloc(0);
      resolve(reading);
    };
    const release = (reading?: 'tooLarge' | 'noRoom'): void => {
      // The memory is released at once, since other bodies may grow before the promise settles.
      allReservedBytes -= reservedBytes;
      reservedBytes = 0;
      settle(reading);
    };
    const add = (chunk: Buffer): void => {
      const newLength = length + chunk.length;
      const isOverReserved = newLength > Math.max(reservedBytes, SHORT_BODY_BYTES_MAX);
      // Doubling bounds how often each byte is copied, for chunks of any size.
      const neededBytes = Math.min(newLength * 2, bytesMax);
      if (newLength > bytesMax) release('tooLarge');
      else if (isOverReserved && !reserve(neededBytes)) release('noRoom');
      else {
        if (newLength > buffer.length) {
          const larger = Buffer.allocUnsafe(Math.max(reservedBytes, neededBytes));
          buffer.copy(larger, 0, 0, length);
          buffer = larger;
        }
        chunk.copy(buffer, length);
        length = newLength;
      }
    };
    request.on('data', add);
    request.on('end', () => settle(buffer.subarray(0, length)));
    // A request has no `end` if it is cut off, or has its response before it is complete.
    request.on('close', () => request.readableEnded || release());
    serverResponse.on('close', () => release());
  });
}
