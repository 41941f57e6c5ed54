/** Reads a body, and stops when it is longer than `bytesMax`: any program may be the server. */
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
