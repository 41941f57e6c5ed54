import type { Transport } from './transport.ts';

/** Sends with `fetch`, which every runtime has. */
export function fetchTransport(fetchWith: typeof fetch): Transport {
  return async ({ url, headers, body: sent, responseBytesMax }, signal) => {
    const response = await fetchWith(url, {
      method: 'POST',
      headers,
      body: sent,
      signal,
      redirect: 'manual',
      credentials: 'omit',
      cache: 'no-store',
    } as RequestInit);
    const decoder = new TextDecoder();
    const chunks = await readBody(response.body, responseBytesMax);
    const body = chunks.map(chunk => decoder.decode(chunk, { stream: true })).join('');
    return { status: response.status, headers: Object.fromEntries(response.headers), body };
  };
}

/** Reads at most one chunk more than `bytesMax`, since any program may be the server. */
export async function readBody(body: Response['body'], bytesMax: number): Promise<Uint8Array[]> {
  const reader = body?.getReader();
  const chunks: Uint8Array[] = [];
  for (let bytes = 0; reader !== undefined && bytes <= bytesMax; ) {
    const { done, value } = await reader.read();
    if (done) return chunks;
    chunks.push(value);
    bytes += value.length;
  }
  await reader?.cancel();
  return chunks;
}
