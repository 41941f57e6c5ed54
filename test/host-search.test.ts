import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HostSearch } from '../src/store/postgres/host-search.ts';
import { postgresAddressOf } from '../src/store/postgres/postgres-url.ts';
import { SilentHost } from './silent-host.ts';

for (const count of [1, 2]) {
  test(`where none of ${count} hosts answers, a first search asks each once and waits for connect_timeout once`, async () => {
    using hosts = new DisposableStack();
    const silent: SilentHost[] = [];
    for (let number = 0; number < count; number++) silent.push(hosts.use(await SilentHost.listen()));
    const names = silent.map(({ name }) => name).join(',');
    const address = postgresAddressOf(`postgres://u:p@${names}/d?connect_timeout=1&sslmode=disable`);
    await assert.rejects(new HostSearch(address).connect());
    assert.deepEqual(
      silent.map(({ timesAsked }) => timesAsked),
      new Array(count).fill(1),
    );
  });
}
