import type { Dispatcher } from 'undici';
import { readRetryAfterMs } from '../../client/retry-after.ts';
import type { ErrorBody } from '../../contract/errors.ts';
import { OUTCOMES, type Outcome } from '../../contract/plant.ts';
import { visible } from '../visible-text.ts';

/** The headers of an answer, by their names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** How one POST /plants ended. */
export type Answer =
  /** `id` is the text of the header Plant-Id. */
  | { kind: 'stored'; outcome: Outcome; id: string | undefined }
  | { kind: 'rejected'; fault: ErrorBody }
  /** 401. */
  | { kind: 'token refused' }
  /** Nothing that a plant store answers to this request. */
  | { kind: 'unexpected'; what: string }
  /** 500: the service met something it does not know; perhaps this plant, perhaps its own trouble. */
  | { kind: 'internal error'; fault: ErrorBody | undefined; retryAfterMs: number }
  /** 429: the service limits how many plants come with this token. */
  | { kind: 'limited'; retryAfterMs: number }
  /** The service was reached, or something before it, and asks for a later try. */
  | { kind: 'try again'; cause: string; retryAfterMs: number }
  /** No whole answer came: `cause` is the code of the network's error. */
  | { kind: 'no answer'; cause: string };

/** An error's body is a number and a sentence; more of it than this is not read. */
const BODY_LENGTH_MAX = 64 * 1024;

/** Takes the answer to one POST /plants from undici, and calls back once with what it means. */
export class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #onAnswer: (answer: Answer) => void;
  #status = 0;
  #headers: AnswerHeaders = {};
  #body = '';

  constructor(onAnswer: (answer: Answer) => void) {
    this.#onAnswer = onAnswer;
  }

  onRequestStart(): void {}

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#status !== 200 && this.#body.length < BODY_LENGTH_MAX) this.#body += chunk.toString('latin1');
  }

  onResponseEnd(): void {
    this.#onAnswer(readAnswer(this.#status, this.#headers, this.#body));
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#onAnswer({ kind: 'no answer', cause: (error as NodeJS.ErrnoException).code ?? error.message });
  }
}

/**
 * Says what an answer means.
 *
 * @param headers by their names in lower case
 * @param body a character for each byte; not needed for a 200
 */
export function readAnswer(status: number, headers: AnswerHeaders, body: string): Answer {
  switch (status) {
    case 200: {
      const outcome = headers['plant-outcome'];
      const id = headers['plant-id'];
      if (isOutcome(outcome)) return { kind: 'stored', outcome, id: typeof id === 'string' ? id : undefined };
      return { kind: 'unexpected', what: '200 without the header Plant-Outcome' };
    }
    case 400:
    case 413: {
      const fault = readFault(body);
      return fault === undefined ? unexpected(status, body) : { kind: 'rejected', fault };
    }
    case 401:
      return { kind: 'token refused' };
    case 500:
      return { kind: 'internal error', fault: readFault(body), retryAfterMs: retryAfterMsOf(headers) };
    case 429:
      return { kind: 'limited', retryAfterMs: retryAfterMsOf(headers) };
    case 408:
    case 502:
    case 503:
    case 504:
      return { kind: 'try again', cause: String(status), retryAfterMs: retryAfterMsOf(headers) };
    default:
      return unexpected(status, body);
  }
}

function unexpected(status: number, body: string): Answer {
  const message = readFault(body)?.message;
  return { kind: 'unexpected', what: `${status}${message === undefined ? '' : ` (${visible(message)})`}` };
}

function retryAfterMsOf(headers: AnswerHeaders): number {
  const text = headers['retry-after'];
  return readRetryAfterMs(typeof text === 'string' ? text : null);
}

function isOutcome(text: unknown): text is Outcome {
  return (OUTCOMES as readonly unknown[]).includes(text);
}

/** The Error of the interface; undefined when the text is none. */
function readFault(body: string): ErrorBody | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(body, 'latin1').toString('utf8'));
    const { error, message } = Object(value) as Partial<ErrorBody>;
    return typeof error === 'number' && typeof message === 'string' ? { error, message } : undefined;
  } catch {
    return undefined;
  }
}
