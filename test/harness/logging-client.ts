import { Client } from 'undici';
import { type NewPlant, newPlantJson } from '../../src/core/contract/plant.ts';
import type { LoggedRequest, LoggedResponse } from './client-log.ts';

/** Differences from a valid request. */
interface Unusual {
  ifRevision?: number | undefined;
  token?: string;
  body?: string;
}

/** A missing response then counts as a broken connection. Far longer than any response takes. */
const RESPONSE_TIMEOUT_MAX_MS = 20_000;

/** A client with one connection that sends plants one after another and records the responses. */
export class LoggingClient {
  /** Whether the service announced that it closes the connection, or the connection broke. */
  ended = false;
  readonly #token: string;
  readonly #log: LoggedRequest[];
  readonly #connection: Client;

  constructor(url: string, token: string, log: LoggedRequest[], ca?: Buffer) {
    this.#token = token;
    this.#log = log;
    this.#connection = new Client(url, {
      connect: { ca },
      headersTimeout: RESPONSE_TIMEOUT_MAX_MS,
      bodyTimeout: RESPONSE_TIMEOUT_MAX_MS,
    });
  }

  async send(
    plant: NewPlant,
    { token = this.#token, body, ifRevision }: Unusual = {},
  ): Promise<LoggedRequest> {
    const sentAt = performance.now();
    const response = await this.#response(token, body ?? newPlantJson(plant), ifRevision);
    const request = { plant, ifRevision, sentAt, respondedAt: performance.now(), response };
    this.#log.push(request);
    return request;
  }

  async #response(
    token: string,
    body: string,
    ifRevision: number | undefined,
  ): Promise<LoggedResponse | undefined> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const condition = ifRevision === undefined ? {} : { 'if-plant-revision': String(ifRevision) };
    try {
      const response = await this.#connection.request({
        method: 'POST',
        path: '/plants',
        headers: { ...headers, ...condition },
        body,
      });
      const field = (name: string): string | undefined => response.headers[name]?.toString();
      this.ended ||= field('connection') === 'close';
      return {
        status: response.statusCode,
        body: await response.body.text(),
        id: field('plant-id'),
        revision: Number(field('plant-revision') ?? 0),
        outcome: field('plant-outcome'),
        retryAfter: field('retry-after'),
      };
    } catch {
      this.ended = true;
      return undefined;
    }
  }

  async close(): Promise<void> {
    await this.#connection.destroy();
  }
}
