import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { PostgresProxy } from '../../harness/postgres-proxy.ts';
import { startServe } from '../../harness/program.ts';
import { RawConnection, type RawResponse, requestBytes } from '../../harness/raw-connection.ts';
import { addToken, startTestService } from '../../harness/running-service.ts';
import { readyz } from '../../harness/store-outage.ts';
import { openTokens, postgresUnderTest, sqliteUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const EFFECT_WITHIN_MS = 5_000;
const LABEL = 'stolen';

const sqlite = sqliteUnderTest();
const postgres = await postgresUnderTest();

/**
 * Revokes a token while `freeze` has stopped the service or its store. Clients send plants from
 * just before `thaw` on. None is in flight at `freeze`: it could hold the lock of an SQLite store.
 */
async function assertRevoked(
  [database, port, token]: [database: string, port: number, token: string],
  freeze: () => void,
  thaw: () => void,
): Promise<void> {
  using stack = new DisposableStack();
  let lastId = 0;
  const sendUntilRejected = async (connection: RawConnection): Promise<void> => {
    for (let status = 0; status !== 401; ) {
      connection.write(requestBytes(token, { body: `{"id":${++lastId},"name":"A"}` }));
      status = (await connection.response()).status;
      assert.ok(status === 401 || status === 503, `${status}`);
      if (status === 503) await wait(20);
    }
  };
  const connections = await Promise.all(
    Array.from({ length: 40 }, async () => stack.use(await RawConnection.open(port))),
  );
  for (const connection of connections) {
    connection.write(requestBytes(token));
    assert.equal((await connection.response()).status, 200);
  }
  await using store = await openTokens(database);
  freeze();
  await store.tokenTable.revokeToken(LABEL, Date.now());
  await wait(EFFECT_WITHIN_MS);
  const sending = connections.map(sendUntilRejected);
  thaw();
  await Promise.all(sending);
}

suite('a token that was revoked more than 5 s ago is rejected', { concurrency: true }, () => {
  test('after the service stood still', async () => {
    const database = await sqlite.newDatabase();
    const token = await addToken(database, LABEL);
    await using serve = await startServe(database);
    const { child } = serve;
    await assertRevoked(
      [database, Number(new URL(serve.url).port), token],
      () => child.kill('SIGSTOP'),
      () => child.kill('SIGCONT'),
    );
  });

  test('while PostgreSQL cannot read the token table', async () => {
    const database = await postgres.newDatabase();
    await using service = await startTestService({ database });
    using connection = await RawConnection.open(service.address.port);
    const send = async (): Promise<RawResponse> => {
      connection.write(requestBytes(service.token));
      return await connection.response();
    };
    assert.equal((await send()).status, 200);
    await postgres.sql(database, 'ALTER TABLE token RENAME TO elsewhere');
    await wait(EFFECT_WITHIN_MS);
    assert.match((await send()).body, /"error":50302/);
    const { reason } = (await readyz(service)) as { reason?: string };
    assert.match(reason ?? '', /token table cannot be read/);
    await postgres.sql(database, 'ALTER TABLE elsewhere RENAME TO token');
    await until('plants are stored again', async () => (await send()).status === 200);
  });

  test('after PostgreSQL stood still', async () => {
    const database = await postgres.newDatabase();
    await using proxy = await PostgresProxy.start(postgres.server.port);
    const token = await addToken(database, LABEL);
    await using service = await startTestService({ database: proxy.url(database) });
    await assertRevoked(
      [database, service.address.port, token],
      () => proxy.stall(),
      () => proxy.passAgain(),
    );
  });
});
