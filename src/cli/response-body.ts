/**
 * Reads a body to its end, or until it is longer than `bytesMax`: any program may be the server.
 *
 * @returns the bytes; a longer body is cut after the chunk that exceeds the limit
 */
export async function readBody(body: Response['body'], bytesMax: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > bytesMax) break;
  }
  return Buffer.concat(chunks);
}
