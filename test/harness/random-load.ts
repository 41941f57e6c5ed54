import { setTimeout as wait } from 'node:timers/promises';
import { hashToken, makeToken } from '../../src/auth/token.ts';
import type { NewPlant } from '../../src/contract/plant.ts';
import { openTokenStore } from '../../src/store/open-store.ts';
import type { LoggedRequest } from './client-log.ts';
import { LoggingClient } from './logging-client.ts';
import { seededRandom } from './seeded-random.ts';
import { until } from './until.ts';

/** Of all instances together. */
const CLIENTS = 18;
/** Ids that all clients send, and contents for each of them: so revisions happen, and the same plant twice. */
const SHARED_IDS = 5;
const SHARED_CONTENTS = 3;
/** After a response other than 200, or none. */
const PAUSE_MS = 10;

/** Makes a token for each client of a load on several instances. */
export async function createTokens(database: string): Promise<string[]> {
  const store = await openTokenStore(database);
  const tokens = Array.from({ length: CLIENTS }, makeToken);
  for (const token of tokens) {
    const label = `load ${token.slice(-6)}`;
    await store.createToken({ hash: hashToken(token), label, createdAt: Date.now(), expiresAt: null });
  }
  await store.close();
  return tokens;
}

/**
 * Clients that send one plant after another until they are told to stop: half of what they send is new, and the rest are
 * plants that others send too, retries of the last one, and requests that must be rejected.
 */
export class RandomLoad implements AsyncDisposable {
  readonly #log: LoggedRequest[];
  readonly #urls: readonly (() => string)[];
  /** Whether a client whose connection has ended goes on with another one. */
  readonly #reconnects: boolean;
  readonly #finished: Promise<unknown>;
  /** For each instance: when a plant of its clients was confirmed, on the monotonic clock. */
  readonly #storedAt: number[][];
  #newestId = BigInt(SHARED_IDS);
  #stopping = false;

  /**
   * @param urls of one service, whose clients each end with their connection; or of instances, asked for again for each
   *   connection, whose clients go on: an instance that starts again has another address
   * @param tokens one for each client where there are several instances: what two of them send alike in the same
   *   millisecond would be the same row otherwise, and after a lost response nothing would tell whose it is
   * @param log gets every request; ids that it holds from earlier loads on the same store are not taken for new ones
   */
  constructor(
    urls: string | readonly (() => string)[],
    tokens: string | readonly string[],
    log: LoggedRequest[],
    seed: number,
  ) {
    this.#log = log;
    this.#reconnects = typeof urls !== 'string';
    this.#urls = typeof urls === 'string' ? [() => urls] : urls;
    this.#storedAt = this.#urls.map(() => []);
    for (const { plant } of log) if (plant.id > this.#newestId) this.#newestId = plant.id;
    const clients = typeof tokens === 'string' ? new Array<string>(CLIENTS).fill(tokens) : tokens;
    this.#finished = Promise.all(
      clients.map((token, client) => this.#run(client % this.#urls.length, token, seed * 100 + client)),
    );
  }

  /** Settles when so many more plants have been confirmed. */
  async keeps(more: number): Promise<void> {
    const last = this.#stored + more;
    await until(`${more} more plants are kept`, () => this.#stored >= last);
  }

  /** Settles when so many plants have been confirmed that there is something to lose. */
  inFlight(): Promise<void> {
    return this.keeps(100);
  }

  /** Settles when clients of every instance had a plant confirmed after this moment. @returns when each first had */
  async storedByEachAfter(moment: number): Promise<number[]> {
    const firstAfter = (storedAt: number[]): number | undefined => storedAt.find(each => each > moment);
    await until('every instance keeps plants', () =>
      this.#storedAt.every(each => firstAfter(each) !== undefined),
    );
    return this.#storedAt.map(each => firstAfter(each)!);
  }

  /** Settles when every client of one service has lost its connection. */
  ended(): Promise<unknown> {
    return this.#finished;
  }

  /** Lets every client wait for its last response and send no more. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#finished;
  }

  /** A test that fails must not leave clients behind that keep its process alive. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  get #stored(): number {
    return this.#storedAt.reduce((sum, { length }) => sum + length, 0);
  }

  async #run(instance: number, token: string, seed: number): Promise<void> {
    const random = seededRandom(seed);
    const newPlant = (): NewPlant => ({ id: ++this.#newestId, name: `${seed} ${'x'.repeat(random(300))}` });
    let plant = newPlant();
    let client: LoggingClient | undefined;
    while (!this.#stopping) {
      client ??= new LoggingClient(this.#urls[instance]!(), token, this.#log);
      const kind = random(10);
      if (kind < 5) plant = newPlant();
      else if (kind < 8) {
        plant = { id: BigInt(random(SHARED_IDS)), name: 'shared', tag: String(random(SHARED_CONTENTS)) };
      }
      const unusual =
        kind > 0 ? {} : random(10) === 0 ? { token: makeToken() } : { body: `{"id":${plant.id},"name":"` };
      const { response, respondedAt } = await client.send(plant, unusual);
      if (response?.status === 200) this.#storedAt[instance]!.push(respondedAt);
      if (client.ended) {
        await client.close();
        if (!this.#reconnects) return;
        client = undefined;
      }
      if (response === undefined || response.status >= 500) await wait(PAUSE_MS);
    }
    await client?.close();
  }
}
