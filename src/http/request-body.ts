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
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > bytesMax) {
        chunks.length = 0;
        settle('tooLarge');
      } else {
        chunks.push(chunk);
      }
    });
    // Nearly every body is one chunk, which needs no copy.
    request.on('end', () => settle(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
    // Settling again changes nothing: after an end these tell nothing new.
    request.on('error', () => settle(undefined));
    request.on('close', () => settle(undefined));
  });
}
