import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { NewPlant } from '../src/contract/plant.ts';
import { openServedStore } from '../src/store/open-store.ts';
import type { PlantWrite, RepeatedIdRule, WriteResult } from '../src/store/plant-store.ts';
import { faultsOf, type LoggedRequest } from './harness/client-log.ts';
import { LoggingClient } from './harness/logging-client.ts';
import { type HeldStatement, PLANT_INSERT, PostgresProxy } from './harness/postgres-proxy.ts';
import { PostgresServer } from './harness/postgres-server.ts';
import { storedRevisions } from './harness/stored-revisions.ts';
import { startTestService } from './running-service.ts';

const SETTLING_LOOK = /^SELECT near\./;
const LOOK = /^SELECT latest\./;

const opened = new AsyncDisposableStack();
let server: PostgresServer;
let pairs: Record<RepeatedIdRule, Pair>;
before(async () => {
  server = opened.use(await PostgresServer.start());
  const [revise, reject] = await Promise.all([Pair.start('revise'), Pair.start('reject')]);
  pairs = { revise: opened.use(revise), reject: opened.use(reject) };
});
after(() => opened.disposeAsync());

/** A service behind a proxy, and another one beside it on the same database, which has a way of its own. */
class Pair implements AsyncDisposable {
  readonly proxy: PostgresProxy;
  readonly log: LoggedRequest[] = [];
  readonly database: string;
  #lastId = 2n ** 53n;
  readonly #opened: AsyncDisposableStack;
  readonly #send: (plant: NewPlant) => Promise<LoggedRequest>;
  readonly #sendToOther: (plant: NewPlant) => Promise<LoggedRequest>;

  private constructor(
    opened: AsyncDisposableStack,
    proxy: PostgresProxy,
    database: string,
    clients: (log: LoggedRequest[]) => ((plant: NewPlant) => Promise<LoggedRequest>)[],
  ) {
    this.#opened = opened;
    this.proxy = proxy;
    this.database = database;
    const [send, sendToOther] = clients(this.log);
    this.#send = send!;
    this.#sendToOther = sendToOther!;
  }

  static async start(repeatedIdRule: RepeatedIdRule = 'revise'): Promise<Pair> {
    const opened = new AsyncDisposableStack();
    const database = await server.createDatabase();
    const proxy = opened.use(await PostgresProxy.start(server.port));
    // One connection, so that the order of batches is known.
    const settings = { repeatedIdRule, connections: 1 };
    const service = opened.use(await startTestService({ database: proxy.url(database), ...settings }));
    const other = opened.use(await startTestService({ database, ...settings }));
    const clients = (log: LoggedRequest[]): ((plant: NewPlant) => Promise<LoggedRequest>)[] =>
      [service.url, other.url].map(url => async plant => {
        const client = new LoggingClient(url, service.token, log);
        const request = await client.send(plant);
        await client.close();
        return request;
      });
    return new Pair(opened, proxy, database, clients);
  }

  /** Contents for an id that is new. */
  newPlants(): Record<'oak' | 'elm' | 'ash', NewPlant> {
    const id = ++this.#lastId;
    return { oak: { id, name: 'oak', tag: 'tree' }, elm: { id, name: 'elm' }, ash: { id, name: 'ash' } };
  }

  /** @returns status, outcome and revision of the answer, in that order */
  async send(plant: NewPlant): Promise<string> {
    return shown(await this.#send(plant));
  }

  /** The same, and its statement is held on the way to PostgreSQL. */
  async sendHeld(
    plant: NewPlant,
    pattern = PLANT_INSERT,
  ): Promise<{ sent: Promise<string>; held: HeldStatement }> {
    const holding = this.proxy.holdNext(pattern);
    const sent = this.send(plant);
    return { sent, held: await holding };
  }

  async sendToOther(plant: NewPlant): Promise<string> {
    return shown(await this.#sendToOther(plant));
  }

  /** Every promise was kept. @returns the names of the revisions of this plant, in their order */
  async stored(id: bigint): Promise<string[]> {
    const revisions = await storedRevisions(this.database);
    assert.deepEqual(faultsOf(this.log, revisions), []);
    return revisions.filter(({ plant }) => plant.id === id).map(({ plant }) => plant.name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}

function shown({ answer }: LoggedRequest): string {
  if (answer?.status !== 200) return `${answer?.status}`;
  return `${answer.status} ${answer.outcome} ${answer.revision}`;
}

for (const rule of ['revise', 'reject'] as const) {
  test(`${rule}: a commit whose answer is cut off is found, and answered as what it was`, async () => {
    const pair = pairs[rule];
    const { oak } = pair.newPlants();
    const { sent, held } = await pair.sendHeld(oak);
    await held.deliver();
    held.cut();
    assert.equal(await sent, '200 created 1');
    assert.deepEqual(await pair.stored(oak.id), ['oak']);
  });

  test(`${rule}: the same when its answer never comes`, async () => {
    const pair = pairs[rule];
    const { oak } = pair.newPlants();
    const { sent, held } = await pair.sendHeld(oak);
    await held.deliver();
    assert.equal(await sent, '200 created 1');
    assert.deepEqual(await pair.stored(oak.id), ['oak']);
  });

  test(`${rule}: a statement that never arrived is sent again, and does nothing when it arrives late`, async () => {
    const pair = pairs[rule];
    const { oak } = pair.newPlants();
    const { sent, held } = await pair.sendHeld(oak);
    held.cut();
    assert.equal(await sent, '200 created 1');
    await held.deliver();
    assert.deepEqual(await pair.stored(oak.id), ['oak']);
  });

  test(`${rule}: one that arrives after the look for it is known again`, async () => {
    const pair = pairs[rule];
    const { oak } = pair.newPlants();
    const { sent, held } = await pair.sendHeld(oak);
    const holdingAgain = pair.proxy.holdNext(PLANT_INSERT);
    held.cut();
    const again = await holdingAgain;
    await held.deliver();
    await again.deliver();
    again.answer();
    assert.equal(await sent, '200 created 1');
    assert.deepEqual(await pair.stored(oak.id), ['oak']);
  });

  test(`${rule}: one that arrives amid the look for it is known again`, async () => {
    const pair = pairs[rule];
    const { oak } = pair.newPlants();
    const { sent, held } = await pair.sendHeld(oak);
    const holdingLook = pair.proxy.holdNext(SETTLING_LOOK);
    held.cut();
    const look = await holdingLook;
    await look.deliver();
    await held.deliver();
    look.answer();
    assert.equal(await sent, '200 created 1');
    assert.deepEqual(await pair.stored(oak.id), ['oak']);
  });
}

test('a revision whose answer is cut off is found', async () => {
  const pair = pairs.revise;
  const { oak, elm } = pair.newPlants();
  await pair.send(elm);
  // The first revision is tried first, and is taken.
  const { sent, held: first } = await pair.sendHeld(oak);
  const holdingSecond = pair.proxy.holdNext(PLANT_INSERT);
  await first.deliver();
  first.answer();
  const second = await holdingSecond;
  await second.deliver();
  second.cut();
  assert.equal(await sent, '200 revised 2');
  assert.deepEqual(await pair.stored(oak.id), ['elm', 'oak']);
});

test('a later revision of another instance does not hide a commit whose answer was cut off', async () => {
  const pair = pairs.revise;
  const { oak, elm, ash } = pair.newPlants();
  const { sent, held } = await pair.sendHeld(oak);
  await held.deliver();
  assert.equal(await pair.sendToOther(elm), '200 revised 2');
  assert.equal(await pair.sendToOther(ash), '200 revised 3');
  held.cut();
  assert.equal(await sent, '200 created 1');
  assert.deepEqual(await pair.stored(oak.id), ['oak', 'elm', 'ash']);
});

test('nor does it hide one that arrived amid the look for it', async () => {
  const pair = pairs.revise;
  const { oak, elm } = pair.newPlants();
  const { sent, held } = await pair.sendHeld(oak);
  const holdingLook = pair.proxy.holdNext(SETTLING_LOOK);
  held.cut();
  const look = await holdingLook;
  await look.deliver();
  await held.deliver();
  assert.equal(await pair.sendToOther(elm), '200 revised 2');
  look.answer();
  assert.equal(await sent, '200 created 1');
  assert.deepEqual(await pair.stored(oak.id), ['oak', 'elm']);
});

test('where another instance took the number meanwhile, the next one is used', async () => {
  const pair = pairs.revise;
  const { oak, elm } = pair.newPlants();
  const { sent, held } = await pair.sendHeld(oak);
  assert.equal(await pair.sendToOther(elm), '200 created 1');
  held.cut();
  assert.equal(await sent, '200 revised 2');
  await held.deliver();
  assert.deepEqual(await pair.stored(oak.id), ['elm', 'oak']);
});

test('reject: with a later plant of another instance refused, the one whose answer was cut off is created', async () => {
  const pair = pairs.reject;
  const { oak, elm } = pair.newPlants();
  const { sent, held } = await pair.sendHeld(oak);
  await held.deliver();
  assert.equal(await pair.sendToOther(elm), '400');
  held.cut();
  assert.equal(await sent, '200 created 1');
  assert.deepEqual(await pair.stored(oak.id), ['oak']);
});

test('reject: where another instance took the id meanwhile, the plant is refused and never stored', async () => {
  const pair = pairs.reject;
  const { oak, elm } = pair.newPlants();
  const { sent, held } = await pair.sendHeld(oak);
  assert.equal(await pair.sendToOther(elm), '200 created 1');
  held.cut();
  assert.equal(await sent, '400');
  await held.deliver();
  assert.deepEqual(await pair.stored(oak.id), ['elm']);
});

test('every plant of a batch is settled, also several of one id, and those that another instance has', async () => {
  const database = await server.createDatabase();
  await using proxy = await PostgresProxy.start(server.port);
  const [ours, other] = await Promise.all(
    [proxy.url(database), database].map(each =>
      openServedStore({ database: each, repeatedIdRule: 'revise', connections: 1 }),
    ),
  );
  const writes = (...plants: [id: number, name: string][]): PlantWrite[] =>
    plants.map(([id, name]) => ({ plant: { id: BigInt(id), name }, recordedBy: 1 }));
  const shownResults = (results: WriteResult[]): string[] =>
    results.map(({ outcome, revision }) => `${outcome} ${revision}`);
  try {
    await other!.engine.commit(writes([3, 'elm'], [4, 'elm']));
    const committing = ours!.engine.commit(
      writes([1, 'oak'], [2, 'oak'], [2, 'oak'], [2, 'elm'], [3, 'elm'], [3, 'oak'], [4, 'oak'], [4, 'elm']),
    );
    // The second round has what the first found taken, and what had to wait for the first of its id.
    for (let round = 1; round <= 2; round++) {
      const held = await proxy.holdNext(PLANT_INSERT);
      await held.deliver();
      if (round === 1) await other!.engine.commit(writes([1, 'ash'], [2, 'ash']));
      held.cut();
    }
    assert.deepEqual(shownResults(await committing), [
      'created 1',
      'created 1',
      // Another's came between the two, and in the batch they came in this order.
      'revised 3',
      'revised 4',
      'unchanged 1',
      'revised 2',
      'revised 2',
      'revised 3',
    ]);
  } finally {
    await Promise.all([ours!.close(), other!.close()]);
  }
});

test('a revision behind a plant that was unchanged is found, and neither is written again', async () => {
  const oak: NewPlant = { id: 1n, name: 'oak' };
  const elm: NewPlant = { id: 1n, name: 'elm' };
  await using proxy = await PostgresProxy.start(server.port);
  const { engine, close } = await openServedStore({
    database: proxy.url(await server.createDatabase()),
    repeatedIdRule: 'revise',
    connections: 1,
  });
  try {
    await engine.commit([{ plant: elm, recordedBy: 1 }]);
    const committing = engine.commit([elm, oak].map(plant => ({ plant, recordedBy: 1 })));
    const first = await proxy.holdNext(PLANT_INSERT);
    await first.deliver();
    const holding = proxy.holdNext(PLANT_INSERT);
    first.answer();
    const second = await holding;
    await second.deliver();
    second.cut();
    assert.deepEqual(await committing, [
      { outcome: 'unchanged', revision: 1 },
      { outcome: 'revised', revision: 2 },
    ]);
  } finally {
    await close();
  }
});

test('a commit that is cut off amid the look of another round is settled too', async () => {
  const pair = pairs.revise;
  const { oak, elm, ash } = pair.newPlants();
  await pair.send(elm);
  const { sent, held: look } = await pair.sendHeld(oak, LOOK);
  assert.equal(await pair.sendToOther(ash), '200 revised 2');
  look.cut();
  assert.equal(await sent, '200 revised 3');
  assert.deepEqual(await pair.stored(oak.id), ['elm', 'ash', 'oak']);
});

test('one that cannot be looked for in time is answered 503, and a retry finds it', async () => {
  const pair = pairs.revise;
  const { oak } = pair.newPlants();
  const { sent, held } = await pair.sendHeld(oak);
  await held.deliver();
  pair.proxy.stall();
  held.cut();
  assert.equal(await sent, '503');
  pair.proxy.passAgain();
  let again = await pair.send(oak);
  while (again === '503') again = await pair.send(oak);
  assert.equal(again, '200 unchanged 1');
  assert.deepEqual(await pair.stored(oak.id), ['oak']);
});
