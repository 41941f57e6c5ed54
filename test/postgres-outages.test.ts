import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoggedRequest } from './harness/client-log.ts';
import { PostgresServer } from './harness/postgres-server.ts';
import { startTestService } from './running-service.ts';
import { assertBack, assertKept, assertUnavailable, isReady, newPlant, send } from './store-outage.ts';

interface Outage {
  what: string;
  begin: (server: PostgresServer) => Promise<void>;
  end: (server: PostgresServer) => Promise<void>;
}

const OUTAGES: Outage[] = [
  { what: 'held', begin: server => server.hold('SIGSTOP'), end: server => server.hold('SIGCONT') },
  { what: 'stopped', begin: server => server.stop(), end: server => server.startAgain() },
  { what: 'killed', begin: server => server.kill(), end: server => server.startAgain() },
];

test('PostgreSQL is held, stopped and killed: every request is answered 503 in time, and 200 afterwards', async t => {
  await using server = await PostgresServer.start();
  const database = await server.createDatabase();
  await using service = await startTestService({ database });
  const log: LoggedRequest[] = [];
  for (const { what, begin, end } of OUTAGES) {
    await t.test(what, async () => {
      await Promise.all(Array.from({ length: 20 }, () => send(service, newPlant(), log)));
      service.logged.length = 0;
      await begin(server);
      try {
        await assertUnavailable(service, log);
        assert.equal(await isReady(service), false);
      } finally {
        await end(server);
      }
      await assertBack(service, log);
      await assertKept(database, log);
    });
  }
});
