import { Pool } from 'undici';
import type { ServiceAddress } from '../service-options.ts';
import { ANSWER_WAIT_MS } from './limits.ts';
import { type Answer, AnswerReader } from './plant-answer.ts';

/**
 * Sends plants, one at a time on each of several connections. Several on the way on one connection (pipelining) are
 * faster, but undici now and then leaves one of them unsent until its time is over.
 */
export class PlantRequests {
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
    this.#path = `${url.pathname.replace(/\/$/, '')}/plants`;
    this.#headers = ['authorization', `Bearer ${token}`, 'content-type', 'application/json'];
  }

  /** @param onAnswer is called once, with whatever came of it */
  post(body: string, onAnswer: (answer: Answer) => void): void {
    this.#pool.dispatch(
      { method: 'POST', path: this.#path, headers: this.#headers, body },
      new AnswerReader(onAnswer),
    );
  }

  /** Cuts the connections; what was not answered is answered with `no answer`. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}
