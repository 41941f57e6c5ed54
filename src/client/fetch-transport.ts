import {
  type HttpResponse,
  NoResponse,
  type Post,
  responseBytesMax,
  type Transport,
  type TransportSettings,
} from './transport.ts';

/** Sends with `fetch`, which every runtime has. Browsers have nothing else. */
export class FetchTransport implements Transport {
  readonly #fetch: typeof fetch;
  readonly #settings: TransportSettings;
  readonly #posts = new Set<Post>();
  #isClosed = false;

  constructor(settings: TransportSettings, fetchWith: typeof fetch) {
    this.#fetch = fetchWith;
    this.#settings = settings;
  }

  post(body: string): Post {
    if (this.#isClosed)
      return { response: Promise.reject(new NoResponse('ECONNABORTED')), abandon: () => {} };
    const aborter = new AbortController();
    let abandon!: (reason: unknown) => void;
    // Rejects by itself, since the caller's fetch may ignore its signal.
    const abandoned = new Promise<never>((_, reject) => {
      abandon = reason => {
        reject(reason);
        aborter.abort();
      };
    });
    const timer = setTimeout(() => abandon(new NoResponse('ETIMEDOUT')), this.#settings.responseTimeoutMs);
    const response = Promise.race([abandoned, this.#send(body, aborter.signal)]).finally(() => {
      clearTimeout(timer);
      this.#posts.delete(post);
    });
    const post: Post = { response, abandon };
    this.#posts.add(post);
    return post;
  }

  close(): void {
    this.#isClosed = true;
    for (const post of this.#posts) post.abandon(new NoResponse('ECONNABORTED'));
  }

  async #send(body: string, signal: AbortSignal): Promise<HttpResponse> {
    const { url, token } = this.#settings;
    // A browser's fetch throws when it is called as a method of another object.
    const send = this.#fetch;
    try {
      const response = await send(url.href, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        ...{ body, signal, redirect: 'manual', credentials: 'omit', cache: 'no-store' },
      } as RequestInit);
      const headers = Object.fromEntries(response.headers);
      return { status: response.status, headers, body: await textOf(response, responseBytesMax(body)) };
    } catch (cause) {
      throw new NoResponse(codeOf(cause), cause);
    }
  }
}

/** The text of a response body. A body longer than `bytesMax` is cut. */
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

/** Node's fetch throws a TypeError whose cause is the network error. Bun throws that one itself. */
function codeOf(error: unknown): string | undefined {
  const { code, cause } = Object(error) as { code?: unknown; cause?: unknown };
  const { code: codeOfCause } = Object(cause) as { code?: unknown };
  return [codeOfCause, code].find(each => typeof each === 'string');
}
