import type { IncomingMessage } from 'node:http';

/**
 * Reads a request body whole.
 *
 * @param bytesMax more than this is not kept
 * @returns the bytes; `tooLarge` as soon as there are more; undefined when the client went away before the end
 */
export function readBody(
  request: IncomingMessage,
  bytesMax: number,
): Promise<Uint8Array | 'tooLarge' | undefined> {
  return new Promise(settle => {
    let body: Buffer | undefined;
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      const start = length;
      length += chunk.length;
      if (length > bytesMax) {
        body = undefined;
        settle('tooLarge');
      } else if (body === undefined) {
        // Nearly every body is one chunk, which needs no copy.
        body = chunk;
      } else {
        body = withRoom(body, start, length);
        chunk.copy(body, start);
      }
    });
    request.on('end', () => settle(body?.subarray(0, length) ?? new Uint8Array()));
    // Settling again changes nothing: after an end these tell nothing new.
    request.on('error', () => settle(undefined));
    request.on('close', () => settle(undefined));
  });
}

/**
 * The chunks of a body are copied together as they come: a client may send a byte in each, and a list of a million
 * buffers takes hundreds of times the memory of what is in them.
 */
function withRoom(body: Buffer, used: number, needed: number): Buffer {
  if (needed <= body.length) return body;
  const larger = Buffer.allocUnsafe(needed * 2);
  body.copy(larger, 0, 0, used);
  return larger;
}
