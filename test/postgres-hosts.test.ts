import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { openReader, openServedStore } from '../src/store/open-store.ts';
import { PostgresProxy } from './harness/postgres-proxy.ts';
import { startProgram } from './harness/program.ts';
import { until } from './harness/until.ts';
import { SilentHost } from './silent-host.ts';
import { postgresUnderTest } from './store-under-test.ts';

const under = await postgresUnderTest();
const database = await under.newDatabase();
await (await openServedStore({ database, repeatedIdRule: 'revise', connections: 1 })).close();
/** Far less than the longest `connect_timeout` here, and far more than what must not take so long. */
const SOON_MS = 20_000;

/** The address of these hosts, where `postgres` stands for the PostgreSQL of the test. */
function urlOf(hosts: string[], { connectSeconds = 60, password = '' } = {}): string {
  const { host } = new URL(database);
  const names = hosts.map(name => (name === 'postgres' ? host : name)).join(',');
  const url = database.replace(host, names).replace(/(?<=:)[^:@]+(?=@)/, own => password || own);
  return `${url}?connect_timeout=${connectSeconds}&sslmode=disable`;
}

for (const count of [1, 2]) {
  test(`${count} silent hosts: each is asked once, and connect_timeout is waited for once`, async () => {
    using hosts = new DisposableStack();
    const silent: SilentHost[] = [];
    while (silent.length < count) silent.push(hosts.use(await SilentHost.listen()));
    const since = performance.now();
    const names = silent.map(({ name }) => name);
    await assert.rejects(
      openReader(urlOf(names, { connectSeconds: 2 })),
      /timeout expired; is PostgreSQL running, and is the address right\?$/,
    );
    // The default is 1.5 s.
    assert.ok(performance.now() - since >= 1_900, 'connect_timeout counts');
    for (const { timesAsked } of silent) assert.equal(timesAsked, 1);
  });
}

// One that is not left keeps the process from its end, for as long as connect_timeout says.
test('a silent host is left as soon as another takes writes', async () => {
  using silent = await SilentHost.listen();
  const reader = await openReader(urlOf(['postgres', silent.name]));
  await silent.isLeft();
  await reader.close();
});

test('a host that failed and is back does not wait behind one that is silent', async () => {
  using silent = await SilentHost.listen();
  await using proxy = await PostgresProxy.start(under.server.port);
  const { engine, close } = await openServedStore({
    database: urlOf([new URL(proxy.url(database)).host, silent.name]),
    repeatedIdRule: 'revise',
    connections: 1,
  });
  await engine.check();
  proxy.cutAll();
  // From here on the silent host is asked first.
  const isBack = (): Promise<boolean> =>
    engine.check().then(
      () => true,
      () => false,
    );
  await until('it is found while the other is silent', isBack);
  await close();
  await silent.isLeft();
});

test('a password that is rejected is sent once, however long another host is silent', async () => {
  using silent = await SilentHost.listen();
  await using proxy = await PostgresProxy.start(under.server.port);
  const { host } = new URL(proxy.url(database));
  const opening = openReader(urlOf([silent.name, host], { connectSeconds: 1, password: 'wrong' }));
  await assert.rejects(opening, /refuses the password/);
  assert.equal(proxy.timesAsked, 1);
});

test('serve ends soon after SIGTERM, also where it has not found its store yet', async () => {
  using silent = await SilentHost.listen();
  const serve = startProgram(['serve', '--database', urlOf([silent.name]), '--listen', '127.0.0.1:0']);
  const ended = once(serve, 'exit');
  await until('the silent host is asked', () => silent.timesAsked > 0);
  serve.kill('SIGTERM');
  const late = setTimeout(() => serve.kill('SIGKILL'), SOON_MS);
  assert.deepEqual(await ended, [1, null]);
  clearTimeout(late);
});
