import { Pool } from 'undici';
import type { ServiceAddress } from '../service-options.ts';
import { ANSWER_WAIT_MS } from './limits.ts';
import { type Answer, AnswerReader } from './plant-answer.ts';
import { type PlantRequests, plantsPath } from './plant-requests.ts';

/** Sends plants over TLS, one at a time on each of several connections. */
export class PooledRequests implements PlantRequests {
  readonly #pool: Pool;
  readonly #path: string;
  readonly #headers: string[];

  /** @param inFlightMax how many the caller sends at most before an answer has come */
  constructor({ url, token }: ServiceAddress, inFlightMax: number) {
    this.#pool = new Pool(url.origin, {
      connections: inFlightMax,
      pipelining: 1,
      allowH2: false,
      connect: { timeout: ANSWER_WAIT_MS },
      headersTimeout: ANSWER_WAIT_MS,
      bodyTimeout: ANSWER_WAIT_MS,
    });
    this.#path = plantsPath(url);
    this.#headers = ['authorization', `Bearer ${token}`, 'content-type', 'application/json'];
  }

  post(body: string, onAnswer: (answer: Answer) => void): void {
    this.#pool.dispatch(
      { method: 'POST', path: this.#path, headers: this.#headers, body },
      new AnswerReader(onAnswer),
    );
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}
