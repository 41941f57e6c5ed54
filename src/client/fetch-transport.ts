import type { Transport } from './transport.ts';

/** Sends with `fetch`, which every runtime has. */
export function fetchTransport(fetchWith: typeof fetch): Transport {
  return async ({ url, headers, body, responseBytesMax }, signal) => {
    const response = await fetchWith(url, {
      method: 'POST',
      ...{ headers, body, signal, redirect: 'manual', credentials: 'omit', cache: 'no-store' },
    } as RequestInit);
    const text = await textOf(response, responseBytesMax);
    return { status: response.status, headers: Object.fromEntries(response.headers), body: text };
  };
}

async function textOf(response: Response, bytesMax: number): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  for (let bytes = 0; reader !== undefined; ) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    text += decoder.decode(value, { stream: true });
    if (bytes > bytesMax) {
      await reader.cancel();
      break;
    }
  }
  return text;
}
