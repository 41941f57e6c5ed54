import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { freePort } from '../../harness/free-port.ts';
import { listen } from '../../harness/loopback-server.ts';
import { queryOnce } from '../../harness/postgres-server.ts';
import { startTestService } from '../../harness/running-service.ts';
import { newPlant, send } from '../../harness/store-outage.ts';
import { databaseName, openTokens, postgresUnderTest } from '../../harness/store-under-test.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

const { server } = await postgresUnderTest();
// What a 200 needs, so a session must keep the settings with which the service replaces these.
await server.query(`CREATE ROLE careless LOGIN SUPERUSER PASSWORD 'secret';
  ALTER ROLE careless SET synchronous_commit = off; ALTER ROLE careless SET client_min_messages = error`);

const PLANTS = 40;
const POOLED = /a pooler, such as PgBouncer, is between .*; name the server itself, or let the pooler keep/;

/** Sends plants on all connections of a service. */
async function assertStoresPlants(url: string): Promise<void> {
  await using service = await startTestService({ database: url });
  const responses = await Promise.all(Array.from({ length: PLANTS }, () => send(service, newPlant(), [])));
  for (const { status } of responses) assert.equal(status, 200);
}

const PGBOUNCER = '/usr/sbin/pgbouncer';
if (!existsSync(PGBOUNCER)) console.error(`NOT TESTED HERE: a pooler needs ${PGBOUNCER}`);
else
  suite('PgBouncer', { concurrency: true }, () => {
    /** A pooler in front of the server, whose connections to it are shared as the settings say. */
    async function startPooler(settings: string) {
      const port = await freePort();
      const file = join(testFolder(), `${port}.ini`);
      writeFileSync(
        file,
        `[databases]\n* = host=127.0.0.1 port=${server.port} user=careless password=secret\n[pgbouncer]
listen_addr = 127.0.0.1\nlisten_port = ${port}\nauth_type = any\nunix_socket_dir =\n${settings}\n`,
      );
      const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
      const pooler = spawn(PGBOUNCER, ['-q', ...user, file], { stdio: 'ignore' });
      const url = `postgres://careless@127.0.0.1:${port}/${databaseName(await server.createDatabase())}`;
      await until('the pooler listens', () =>
        queryOnce(url, 'SELECT 1').then(
          () => true,
          () => false,
        ),
      );
      return {
        url,
        async [Symbol.asyncDispose]() {
          pooler.kill();
          await once(pooler, 'exit');
        },
      };
    }

    for (const [settings, connections] of [
      ['pool_mode = transaction', 1],
      // A statement gets the connection that has been idle longest.
      ['pool_mode = transaction\nserver_round_robin = 1', 2],
      ['pool_mode = transaction\ndefault_pool_size = 1', 1],
      ['pool_mode = statement', 1],
    ] as const)
      test(`is rejected with ${settings.replaceAll('\n', ', ')}`, async () => {
        await using pooler = await startPooler(settings);
        // Statements at the same time need a connection of the pooler each.
        const sleeping = Array.from({ length: connections }, () =>
          queryOnce(pooler.url, 'SELECT pg_sleep(0.3)'),
        );
        await Promise.all(sleeping);
        await assert.rejects(openTokens(pooler.url), POOLED);
      });

    test('stores plants with pool_mode = session', async () => {
      await using pooler = await startPooler('pool_mode = session');
      await assertStoresPlants(pooler.url);
    });
  });

test('a proxy that gives each session a process, and another key for cancel requests, stores plants', async () => {
  const database = databaseName(await server.createDatabase());
  let changedKeys = 0;
  await using proxy = await listen(
    createServer(client => {
      const target = connect(server.port, '127.0.0.1');
      for (const socket of [client, target]) socket.on('error', () => {});
      client.pipe(target).on('close', () => client.destroy());
      target.on('data', (data: Buffer) => {
        // The first BackendKeyData follows ParameterStatus messages, which contain no such bytes.
        const at = data.indexOf(BACKEND_KEY);
        if (at !== -1) data.writeInt32BE(-1 - changedKeys++, at + BACKEND_KEY.length);
        client.write(data);
      });
    }),
  );
  await assertStoresPlants(
    server.url(database, '', 'careless', 'secret').replace(/:\d+\//, `:${proxy.port}/`),
  );
  assert.ok(changedKeys > 1, 'the proxy has changed keys');
});

/** The start of BackendKeyData, https://www.postgresql.org/docs/current/protocol-message-formats.html */
const BACKEND_KEY = Buffer.from([0x4b, 0, 0, 0, 12]);
