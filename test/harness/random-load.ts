import { makeToken } from '../../src/auth/token.ts';
import type { NewPlant } from '../../src/contract/plant.ts';
import type { LoggedRequest } from './client-log.ts';
import { LoggingClient } from './logging-client.ts';
import { seededRandom } from './seeded-random.ts';
import { until } from './until.ts';

const CLIENTS = 16;
/** Ids from here on are new each time; those below are sent by several clients. */
const FIRST_NEW_ID = 10n;

/**
 * Clients that send one plant after another, each on its own connection, until that ends or they are told to stop:
 * mostly new plants, and among them retries, plants that other clients revise, and requests that must be refused.
 */
export class RandomLoad {
  readonly #log: LoggedRequest[];
  readonly #finished: Promise<unknown>;
  #stopping = false;
  #keptAtStart = 0;

  /** @param log gets every request; what it holds from earlier loads on the same store is not sent again */
  constructor(url: string, token: string, log: LoggedRequest[], seed: number) {
    this.#log = log;
    this.#keptAtStart = this.#kept;
    const newIds = idsFrom(
      log.reduce((newest, { plant: { id } }) => (id < newest ? newest : id + 1n), FIRST_NEW_ID),
    );
    const clients = Array.from({ length: CLIENTS }, () => new LoggingClient(url, token, log));
    this.#finished = Promise.all(
      clients.map((client, index) =>
        this.#run(client, newIds, `${seed}-${index}`, seededRandom(seed * CLIENTS + index)),
      ),
    );
  }

  async #run(
    client: LoggingClient,
    newIds: Iterator<bigint>,
    name: string,
    random: (below: number) => number,
  ): Promise<void> {
    const newPlant = (): NewPlant => ({
      id: newIds.next().value,
      name: `${name} ${'x'.repeat(random(300))}`,
    });
    let plant = newPlant();
    while (!client.ended && !this.#stopping) {
      const kind = random(10);
      if (kind > 0) plant = kind === 1 ? { id: BigInt(random(5)), name, tag: String(random(3)) } : newPlant();
      if (kind === 2) await client.send(plant, { token: makeToken() });
      else if (kind === 3) await client.send(plant, { body: `{"id":${plant.id},"name":"without an end` });
      else await client.send(plant);
    }
    await client.close();
  }

  get #kept(): number {
    return this.#log.filter(({ answer }) => answer?.status === 200).length;
  }

  /** Settles when so many plants have been kept that there is something to lose. */
  async underWay(): Promise<void> {
    await until('100 plants are kept', () => this.#kept >= this.#keptAtStart + 100);
  }

  /** Settles when every client has had its last answer, or lost its connection. */
  ended(): Promise<unknown> {
    return this.#finished;
  }

  /** Lets every client wait for its last answer and send no more. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#finished;
  }
}

function* idsFrom(first: bigint): Generator<bigint, never> {
  for (let id = first; ; id++) yield id;
}
