import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { HostSearch } from '../src/store/postgres/host-search.ts';
import { postgresAddressOf } from '../src/store/postgres/postgres-url.ts';
import { PostgresProxy } from './harness/postgres-proxy.ts';
import { startProgram } from './harness/program.ts';
import { SilentHost } from './silent-host.ts';
import { postgresUnderTest } from './store-under-test.ts';

const under = await postgresUnderTest();
const database = await under.newDatabase();
/** Far less than the longest `connect_timeout` here, and far more than what must not take so long. */
const SOON_MS = 20_000;

/** The address of these hosts, where `postgres` stands for the PostgreSQL of the test. */
function urlOf(hosts: string[], { connectSeconds = 60, password = '' } = {}): string {
  const { host } = new URL(database);
  const names = hosts.map(name => (name === 'postgres' ? host : name)).join(',');
  const url = database.replace(host, names).replace(/(?<=:)[^:@]+(?=@)/, own => password || own);
  return `${url}?connect_timeout=${connectSeconds}&sslmode=disable`;
}

function searchAmong(...address: Parameters<typeof urlOf>): HostSearch {
  return new HostSearch(postgresAddressOf(urlOf(...address)));
}

for (const count of [1, 2]) {
  test(`where none of ${count} hosts answers, a first search asks each once and waits for connect_timeout once`, async () => {
    using hosts = new DisposableStack();
    const silent: SilentHost[] = [];
    for (let number = 0; number < count; number++) silent.push(hosts.use(await SilentHost.listen()));
    const search = searchAmong(
      silent.map(({ name }) => name),
      { connectSeconds: 1 },
    );
    await assert.rejects(search.connect());
    assert.deepEqual(
      silent.map(({ timesAsked }) => timesAsked),
      new Array(count).fill(1),
    );
  });
}

// One that is not left keeps the process from its end, for as long as connect_timeout says.
test('a silent host is left as soon as another takes writes', async () => {
  using silent = await SilentHost.listen();
  const connection = await searchAmong(['postgres', silent.name]).connect();
  await silent.isAsked();
  await silent.isLeft();
  await connection.close();
});

test('a search that is closed is over at once, and leaves the host that it asks', async () => {
  using silent = await SilentHost.listen();
  const search = searchAmong([silent.name]);
  const searching = assert.rejects(search.connect(), { name: 'StoreUnavailable' });
  await silent.isAsked();
  search.close();
  await searching;
  await silent.isLeft();
  await assert.rejects(search.connect(), { name: 'StoreUnavailable' });
  assert.equal(silent.timesAsked, 1, 'nobody is asked after that');
});

test('a host that failed and is back does not wait behind one that is silent', async () => {
  using silent = await SilentHost.listen();
  const search = searchAmong(['postgres', silent.name]);
  const connection = await search.connect();
  search.suspect(connection.host);
  await connection.close();
  const again = await Promise.race([search.connect(), wait(SOON_MS, undefined, { ref: false })]);
  assert.ok(again !== undefined, 'it is not found while the other is silent');
  assert.equal(again.host.port, under.server.port);
  await again.close();
});

test('a password that is refused is sent once, however long another host is silent', async () => {
  using silent = await SilentHost.listen();
  await using proxy = await PostgresProxy.start(under.server.port);
  const { host } = new URL(proxy.url(database));
  const search = searchAmong([silent.name, host], { connectSeconds: 2, password: 'wrong' });
  await assert.rejects(search.connect(), /password/);
  assert.equal(proxy.timesAsked, 1);
});

test('serve ends soon after SIGTERM, also where it has not found its store yet', async () => {
  using silent = await SilentHost.listen();
  const serve = startProgram(['serve', '--database', urlOf([silent.name]), '--listen', '127.0.0.1:0']);
  const ended = once(serve, 'exit');
  await silent.isAsked();
  serve.kill('SIGTERM');
  const late = setTimeout(() => serve.kill('SIGKILL'), SOON_MS);
  assert.deepEqual(await ended, [1, null]);
  clearTimeout(late);
});
