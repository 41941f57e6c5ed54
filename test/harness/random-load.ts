import { setTimeout as wait } from 'node:timers/promises';
import type { NewPlant } from '../../src/core/contract/plant.ts';
import { hashToken, makeToken } from '../../src/core/tokens/token.ts';
import type { LoggedRequest } from './client-log.ts';
import { LoggingClient } from './logging-client.ts';
import { openCommandStore } from './open-store.ts';
import { seededRandom } from './seeded-random.ts';
import { until } from './until.ts';

/** The number of clients of all instances together. */
const CLIENTS = 18;
/** All clients send these ids and contents, so that there are revisions and repeated plants. */
const SHARED_IDS = 5;
const SHARED_CONTENTS = 3;
/** The pause after a 5xx, or after a missing response. */
const PAUSE_MS = 10;

export async function createTokens(database: string): Promise<string[]> {
  const store = await openCommandStore(database);
  const tokens = Array.from({ length: CLIENTS }, makeToken);
  for (const token of tokens) {
    const label = `load ${token.slice(-6)}`;
    await store.tokenTable.createToken({
      hash: hashToken(token),
      label,
      createdAt: Date.now(),
      expiresAt: null,
    });
  }
  await store.close();
  return tokens;
}

/**
 * Clients that send plants one after another until `stop`. Half of the plants are new. The others
 * are plants that other clients send too, retries of the last plant, and requests that must be
 * rejected. Half of all have a condition: a new plant, or the revision that a client has seen last.
 */
export class RandomLoad implements AsyncDisposable {
  readonly #log: LoggedRequest[];
  readonly #urls: readonly (() => string)[];
  /** Whether a client opens a new connection after its connection ended. */
  readonly #reconnects: boolean;
  readonly #finished: Promise<unknown>;
  /** For each instance, when plants of its clients were confirmed, on the monotonic clock. */
  readonly #storedAt: number[][];
  #newestId = BigInt(SHARED_IDS);
  /** The last revision of each shared id that a response has named. */
  readonly #seen = new Map<bigint, number>();
  #stopping = false;

  /**
   * @param urls the URL of one service, whose clients end with their connections. Or a function for
   *   each instance, called for each connection: a restarted instance has another URL.
   * @param tokens one for each client if there are several instances. Otherwise the same plant from
   *   two clients in one millisecond gives equal rows. A lost response leaves their origin unknown.
   * @param log receives every request; ids in it, from earlier loads, are not used for new plants
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

  async stores(more: number): Promise<void> {
    const last = this.#stored + more;
    await until(`${more} more plants are stored`, () => this.#stored >= last);
  }

  /** Settles when enough plants are confirmed for a fault to be noticed. */
  inFlight(): Promise<void> {
    return this.stores(100);
  }

  /** @returns for each instance, when it confirmed its first plant after this moment */
  async storedByEachAfter(moment: number): Promise<number[]> {
    const firstAfter = (storedAt: number[]): number | undefined => storedAt.find(each => each > moment);
    await until('every instance stores plants', () =>
      this.#storedAt.every(each => firstAfter(each) !== undefined),
    );
    return this.#storedAt.map(each => firstAfter(each)!);
  }

  /** Settles when all clients of one service have lost their connections. */
  ended(): Promise<unknown> {
    return this.#finished;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#finished;
  }

  /** Stops the clients of a failed test, which would keep its process alive. */
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
      const ifRevision = [undefined, undefined, 0, this.#seen.get(plant.id) ?? 0][random(4)];
      const { response, respondedAt } = await client.send(plant, { ...unusual, ifRevision });
      if (response !== undefined && [200, 412].includes(response.status) && plant.id < SHARED_IDS)
        this.#seen.set(plant.id, response.revision);
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
