import { setTimeout as wait } from 'node:timers/promises';
import { hashToken, makeToken } from '../../src/auth/token.ts';
import type { NewPlant } from '../../src/contract/plant.ts';
import { openTokenStore } from '../../src/store/open-store.ts';
import type { LoggedRequest } from './client-log.ts';
import { LoggingClient } from './logging-client.ts';
import { seededRandom } from './seeded-random.ts';
import { until } from './until.ts';

/** For each instance. */
const CLIENTS = 6;
/** Ids that all clients send, and contents for each of them: so revisions happen, and the same plant twice. */
const SHARED_IDS = 5;
const SHARED_CONTENTS = 3;
/** After an answer that is no 200, or none. */
const PAUSE_MS = 10;

/**
 * Clients of several instances over one store, which go on through whatever happens, until they are told to stop: half
 * of what they send is new, and the rest are plants that others send too, retries of the last one, and requests that
 * must be refused.
 */
export class SharedLoad implements AsyncDisposable {
  readonly #log: LoggedRequest[];
  readonly #finished: Promise<unknown>;
  #stopping = false;
  /** For each instance: when a plant was answered 200, on the clock that is never set. */
  readonly #keptAt: number[][];
  #lastId = BigInt(SHARED_IDS);

  private constructor(urls: readonly (() => string)[], tokens: string[], log: LoggedRequest[], seed: number) {
    this.#log = log;
    this.#keptAt = urls.map(() => []);
    this.#finished = Promise.all(
      tokens.map((token, client) =>
        this.#run(urls, client % urls.length, token, `${seed}-${client}`, seededRandom(seed * 100 + client)),
      ),
    );
  }

  /**
   * @param urls of the instances, asked for again for each connection: an instance that starts again has another one
   * @param database where they keep their plants, in which nobody has sent any yet
   * @param log gets every request
   */
  static async start(
    urls: readonly (() => string)[],
    database: string,
    log: LoggedRequest[],
    seed: number,
  ): Promise<SharedLoad> {
    // One for each client: what two of them send alike in the same millisecond would be the same row otherwise, and
    // after a lost answer nothing would tell whose it is.
    const tokens = await createTokens(database, urls.length * CLIENTS, seed);
    return new SharedLoad(urls, tokens, log, seed);
  }

  /** Settles when so many more plants have been answered 200. */
  async keeps(more: number): Promise<void> {
    const last = this.#kept + more;
    await until(`${more} more plants are kept`, () => this.#kept >= last);
  }

  /** Settles when every instance has answered 200 after this moment. @returns when each first did */
  async keptByEachAfter(moment: number): Promise<number[]> {
    const firstAfter = (keptAt: number[]): number | undefined => keptAt.find(each => each > moment);
    await until('every instance keeps plants', () =>
      this.#keptAt.every(each => firstAfter(each) !== undefined),
    );
    return this.#keptAt.map(each => firstAfter(each)!);
  }

  /** Lets every client wait for its last answer and send no more. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#finished;
  }

  /** A test that fails must not leave clients behind that keep its process alive. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  get #kept(): number {
    return this.#keptAt.reduce((sum, { length }) => sum + length, 0);
  }

  async #run(
    urls: readonly (() => string)[],
    instance: number,
    token: string,
    name: string,
    random: (below: number) => number,
  ): Promise<void> {
    const newPlant = (): NewPlant => ({
      id: ++this.#lastId,
      name: `${name} ${'x'.repeat(random(200))}`,
    });
    let plant = newPlant();
    let client: LoggingClient | undefined;
    while (!this.#stopping) {
      client ??= new LoggingClient(urls[instance]!(), token, this.#log);
      const kind = random(10);
      if (kind < 5) plant = newPlant();
      else if (kind < 8) {
        plant = { id: BigInt(random(SHARED_IDS)), name: 'shared', tag: String(random(SHARED_CONTENTS)) };
      }
      const unusual =
        kind > 0 ? {} : random(10) === 0 ? { token: makeToken() } : { body: `{"id":${plant.id},"name":"` };
      const { answer, answeredAt } = await client.send(plant, unusual);
      if (client.ended) {
        await client.close();
        client = undefined;
      }
      if (answer?.status === 200) this.#keptAt[instance]!.push(answeredAt);
      if (answer === undefined || answer.status >= 500) await wait(PAUSE_MS);
    }
    await client?.close();
  }
}

async function createTokens(database: string, count: number, seed: number): Promise<string[]> {
  const store = await openTokenStore(database);
  const tokens = Array.from({ length: count }, makeToken);
  for (const [index, token] of tokens.entries()) {
    const label = `load ${seed}-${index}`;
    await store.createToken({ hash: hashToken(token), label, createdAt: Date.now(), expiresAt: null });
  }
  await store.close();
  return tokens;
}
