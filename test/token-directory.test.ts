import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { makeToken } from '../src/auth/token.ts';
import { TokenDirectory } from '../src/auth/token-directory.ts';
import { TOKEN_REFRESH_INTERVAL_MIN_MS } from '../src/contract/limits.ts';
import { SqliteEngine } from '../src/store/sqlite/sqlite-engine.ts';

test('a look for an unknown token that is due when the service ends does not open the store again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-tokens-'));
  const engine = await SqliteEngine.open({ path: join(folder, 'plants.db'), repeatedIdRule: 'revise' });
  const directory = await TokenDirectory.open(engine, () => {});
  assert.equal(await directory.holderOf(makeToken()), undefined);
  // Looks are rationed, so this one has to wait; its client is gone by then.
  const late = directory.holderOf(makeToken());
  let writerThreads = 0;
  process.on('worker', () => writerThreads++);
  await directory.close();
  await engine.close();
  await wait(2 * TOKEN_REFRESH_INTERVAL_MIN_MS);
  assert.equal(await late, 'storeUnavailable');
  // Where one was started, the process would never end.
  await engine.close();
  rmSync(folder, { recursive: true });
  assert.equal(writerThreads, 0, 'a writer thread was started behind the end');
});
