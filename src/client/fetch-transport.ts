import { answerBytesMax } from './http-answer.ts';
import { type HttpAnswer, NoAnswer, type Transport, type TransportSettings } from './transport.ts';

/** Sends with the `fetch` of the runtime, which every runtime has, and a browser nothing else. */
export class FetchTransport implements Transport {
  readonly #fetch: typeof fetch;
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #answerWaitMs: number;

  constructor({ url, token, answerWaitMs }: TransportSettings, fetchWith: typeof fetch) {
    this.#fetch = fetchWith;
    this.#url = url.href;
    this.#headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    this.#answerWaitMs = answerWaitMs;
  }

  async post(body: string, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    signal?.throwIfAborted();
    const attempt = new AbortController();
    const late = setTimeout(() => attempt.abort(), this.#answerWaitMs);
    const onAbort = (): void => attempt.abort();
    signal?.addEventListener('abort', onAbort);
    // A browser's fetch must not be called as a method of something else.
    const send = this.#fetch;
    try {
      const response = await send(this.#url, {
        ...{ method: 'POST', headers: this.#headers, body, signal: attempt.signal },
        ...{ redirect: 'manual', credentials: 'omit', cache: 'no-store' },
      } as RequestInit);
      const { status, headers } = response;
      return {
        status,
        headers: Object.fromEntries(headers),
        body: await textOf(response, answerBytesMax(body)),
      };
    } catch (cause) {
      signal?.throwIfAborted();
      throw new NoAnswer(attempt.signal.aborted ? 'ETIMEDOUT' : codeOf(cause), cause);
    } finally {
      clearTimeout(late);
      signal?.removeEventListener('abort', onAbort);
    }
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
