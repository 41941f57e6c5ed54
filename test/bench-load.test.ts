import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { suite, test } from 'node:test';
import { plantMaker } from '../bench/create-requests.ts';
import { prefillStore } from '../bench/prefill.ts';
import { plantStoreOnSqlite } from '../bench/subjects.ts';
import { inNewFolder } from '../bench/trial.ts';
import { type LoadOrder, runOpenLoop } from './harness/load.ts';

const ORDER: LoadOrder = {
  url: '',
  tokens: [],
  connections: 1,
  seconds: 1,
  ids: 'ascending',
  nameBytes: 35,
  firstId: 1_700_000_000_000_000,
};

suite('plants that the benchmark sends', () => {
  test('have the name length that was asked for, and no two are the same', () => {
    for (const nameBytes of [1, 8, 16, 17, 35, 65_536]) {
      const next = plantMaker({ ...ORDER, nameBytes });
      const plants = [next(), next(), next()].map(body => JSON.parse(body));
      assert.deepEqual(
        plants.map(({ id, name }) => [id - ORDER.firstId, name.length]),
        [1, 2, 3].map(id => [id, nameBytes]),
      );
      assert.equal(new Set(plants.map(({ name }) => name)).size, 3);
    }
  });

  test('can have random ids, of 19 digits', () => {
    const random = plantMaker({ ...ORDER, ids: 'random' });
    for (let count = 0; count < 1000; count++) {
      const digits = /^\{"id":([0-9]+),/.exec(random())![1]!;
      assert.equal(digits.length, 19);
      assert.ok(BigInt(digits) < 2n ** 63n);
    }
  });
});

suite('an open loop', () => {
  test('sends what is due to a plant store that holds plants already, and counts every answer', async () => {
    await inNewFolder(async folder => {
      const path = join(folder, 'plants.db');
      prefillStore(path, 1000);
      const running = await plantStoreOnSqlite(path).start(folder);
      const settings = { url: running.url, connections: 4, seconds: 1, ratePerSecond: 200 };
      try {
        assert.ok(running.startMs > 0 && running.cpuUs() > 0);
        assert.ok(running.residentBytes() <= running.residentPeakBytes());
        const { requests, failures, unanswered, p50Us, maxUs } = await runOpenLoop({
          ...settings,
          token: running.token,
          ids: 'random',
        });
        assert.deepEqual({ requests, failures, unanswered }, { requests: 200, failures: 0, unanswered: 0 });
        assert.ok(p50Us > 0 && p50Us <= maxUs);

        const refused = await runOpenLoop({ ...settings, seconds: 0.1, token: 'unknown' });
        assert.deepEqual([refused.requests, refused.failures], [0, 20]);
      } finally {
        await running.stop();
      }
      using database = new DatabaseSync(path, { readOnly: true });
      const { plants } = database.prepare('SELECT count(*) AS plants FROM plant').get()!;
      // 1000 were there, one found out that it takes plants, and as many as were counted went before those.
      assert.equal(plants, 1401);
      assert.ok(running.storeBytes()! > 0);
    });
  });

  test('counts what is never answered, also what found no free connection', async () => {
    const server = createServer(socket => socket.resume()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const settings = { url: `http://127.0.0.1:${port}`, token: '', connections: 2, seconds: 0.1 };
    const { requests, failures, unanswered } = await runOpenLoop({ ...settings, ratePerSecond: 100 });
    server.close();
    assert.deepEqual({ requests, failures, unanswered }, { requests: 0, failures: 0, unanswered: 10 });
  });
});
