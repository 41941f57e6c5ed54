import {
  answerBytesMax,
  type HttpAnswer,
  NoAnswer,
  type Post,
  type Transport,
  type TransportSettings,
} from './transport.ts';

/** Sends with the `fetch` of the runtime, which every runtime has, and a browser nothing else. */
export class FetchTransport implements Transport {
  readonly #fetch: typeof fetch;
  readonly #settings: TransportSettings;
  readonly #posts = new Set<FetchPost>();
  #isClosed = false;

  constructor(settings: TransportSettings, fetchWith: typeof fetch) {
    this.#fetch = fetchWith;
    this.#settings = settings;
  }

  post(body: string): Post {
    if (this.#isClosed) return { answer: Promise.reject(new NoAnswer('ECONNABORTED')), abandon: () => {} };
    const post = new FetchPost(this.#fetch, this.#settings, body, () => this.#posts.delete(post));
    this.#posts.add(post);
    return post;
  }

  close(): void {
    this.#isClosed = true;
    for (const post of this.#posts) post.abandon(new NoAnswer('ECONNABORTED'));
  }
}

class FetchPost implements Post {
  readonly answer: Promise<HttpAnswer>;
  readonly #attempt = new AbortController();
  #reject!: (reason: unknown) => void;

  constructor(send: typeof fetch, settings: TransportSettings, body: string, onSettled: () => void) {
    const late = setTimeout(() => this.abandon(new NoAnswer('ETIMEDOUT')), settings.answerWaitMs);
    this.answer = new Promise<HttpAnswer>((resolve, reject) => {
      this.#reject = reject;
      this.#send(send, settings, body).then(resolve, cause => reject(new NoAnswer(codeOf(cause), cause)));
    }).finally(() => {
      clearTimeout(late);
      onSettled();
    });
  }

  /** Waits no longer, also for a fetch of the caller that does not listen to its signal. */
  abandon(reason: unknown): void {
    this.#reject(reason);
    this.#attempt.abort();
  }

  /** `send` is no member: a browser's fetch must not be called as a method of something else. */
  async #send(send: typeof fetch, { url, token }: TransportSettings, body: string): Promise<HttpAnswer> {
    const response = await send(url.href, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...{ body, signal: this.#attempt.signal },
      ...{ redirect: 'manual', credentials: 'omit', cache: 'no-store' },
    } as RequestInit);
    const { status, headers } = response;
    return {
      status,
      headers: Object.fromEntries(headers),
      body: await textOf(response, answerBytesMax(body)),
    };
  }
}

/** The text of an answer; of one that goes on and on, the beginning. */
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

/** Node's fetch throws a TypeError, whose cause is the error of the network; Bun's throws that error itself. */
function codeOf(error: unknown): string | undefined {
  const { code, cause } = Object(error) as { code?: unknown; cause?: unknown };
  const { code: codeOfCause } = Object(cause) as { code?: unknown };
  return [codeOfCause, code].find(each => typeof each === 'string');
}
