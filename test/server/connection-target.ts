import assert from 'node:assert/strict';
import { after } from 'node:test';
import { RawConnection, type RequestParts, requestBytes } from '../harness/raw-connection.ts';
import { assertErrorResponse, assertPlantResponse } from '../harness/response-assertions.ts';
import { type RunningService, startTestService, type TestSettings } from '../harness/running-service.ts';
import { serverSideOf } from '../harness/server-side.ts';
import { storedRevisions } from '../harness/stored-revisions.ts';
import { until } from '../harness/until.ts';

/** The id of plants that must never be stored. */
export const GHOST_ID = 1;

/** A service for tests that control its connections byte by byte. */
export class ConnectionTarget {
  readonly service: RunningService;
  readonly #created: number[] = [];
  #lastId = GHOST_ID;

  private constructor(service: RunningService) {
    this.service = service;
  }

  /** Starts a service for the tests of a file. Await it before the first one. */
  static async start(settings: TestSettings = {}): Promise<ConnectionTarget> {
    const target = new ConnectionTarget(await startTestService(settings));
    after(() => target.#end());
    return target;
  }

  /**
   * Checks that each created plant is stored once, that no rejected one is, and that the log is
   * empty, then stops the service.
   */
  async #end(): Promise<void> {
    try {
      const ids = (await storedRevisions(this.service.database)).map(({ plant }) => Number(plant.id));
      const stored = new Set(ids);
      assert.equal(stored.size, ids.length);
      assert.ok(!stored.has(GHOST_ID));
      assert.deepEqual(
        this.#created.filter(id => !stored.has(id)),
        [],
      );
      assert.deepEqual(this.service.logged, []);
    } finally {
      await this.service[Symbol.asyncDispose]();
    }
  }

  /** An id without a stored plant. */
  nextId(): number {
    return ++this.#lastId;
  }

  /** Checks that the next responses confirm that these plants were created. */
  async assertCreated(connection: RawConnection, ...ids: readonly number[]): Promise<void> {
    for (const id of ids) await assertCreated(connection, id);
    this.#created.push(...ids);
  }

  open(): Promise<RawConnection> {
    return RawConnection.open(this.service.address.port);
  }

  /** A valid request, except for the given parts; by default, the body is a plant with this id. */
  request(id: number, parts: RequestParts = {}): Buffer {
    return requestBytes(this.service.token, { body: plantJson(id), ...parts });
  }

  /** Checks that the service responds to another client, without its store. */
  async assertAlive(): Promise<void> {
    using connection = await this.open();
    connection.write('GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n');
    await assertRejected(connection, 40401);
  }

  /** Checks that the connection is usable and has no unread responses. */
  async assertOpen(connection: RawConnection): Promise<void> {
    const id = this.nextId();
    connection.write(this.request(id));
    await this.assertCreated(connection, id);
    connection.finish();
    await assertClosed(connection);
  }
}

export function plantJson(id: number): string {
  return `{"id":${id},"name":"Plant ${id}"}`;
}

/** Checks that the next response confirms that this plant was created, and what follows it. */
export async function assertCreated(
  connection: RawConnection,
  id: number,
  next?: 'close' | 'keep-alive',
): Promise<void> {
  const response = await connection.response();
  if (next !== undefined) assert.equal(response.headers.get('connection'), next);
  assertPlantResponse(response, { name: `Plant ${id}` });
  assert.equal(response.headers.get('plant-id'), String(id));
  assert.equal(response.headers.get('plant-outcome'), 'created');
}

/** Checks that the next response is the Error with this number. */
export async function assertRejected(connection: RawConnection, number: number): Promise<void> {
  assertErrorResponse(await connection.response(), number);
}

/** Writes, and waits until the service has read it all. */
export async function writeApart(connection: RawConnection, bytes: Uint8Array): Promise<void> {
  connection.socket.setNoDelay(true);
  connection.write(bytes);
  await until(
    'the service reads what was written',
    () => serverSideOf(connection)?.bytesRead === connection.socket.bytesWritten,
  );
}

/** Checks that the server closes the connection without a reset, and that no response is unread. */
export async function assertClosed(connection: RawConnection): Promise<void> {
  assert.equal(await connection.ended, 'closed');
  assert.equal(connection.unread, '');
}
