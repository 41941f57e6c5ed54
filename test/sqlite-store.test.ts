import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { ID_MAX, ID_MIN } from '../src/contract/limits.ts';
import type { NewPlant } from '../src/contract/plant.ts';
import { latestOf } from '../src/store/latest-revisions.ts';
import { openReader } from '../src/store/open-store.ts';
import {
  type PlantRevision,
  type RepeatedIdRule,
  type StorageEngine,
  StoreUnavailable,
  type WriteResult,
} from '../src/store/plant-store.ts';
import { openForWriting } from '../src/store/sqlite/database.ts';
import { SqliteEngine } from '../src/store/sqlite/sqlite-engine.ts';

const folder = mkdtempSync(join(tmpdir(), 'plant-store-sqlite-'));
after(() => rmSync(folder, { recursive: true }));
let paths = 0;

/** A path where nothing is yet, in a folder of its own. */
function newPath(): string {
  const own = join(folder, String(++paths));
  mkdirSync(own);
  return join(own, 'plants.db');
}

async function withEngine(
  path: string,
  use: (engine: StorageEngine) => Promise<void>,
  repeatedIdRule: RepeatedIdRule = 'revise',
): Promise<void> {
  const engine = await SqliteEngine.open({ path, repeatedIdRule });
  try {
    await use(engine);
  } finally {
    await engine.close();
  }
}

function commit(engine: StorageEngine, ...plants: NewPlant[]): Promise<WriteResult[]> {
  return engine.commit(plants.map(plant => ({ plant, recordedBy: 1 })));
}

/** What a reader of its own finds: the latest revision of each plant, all revisions, or those of one id. */
async function stored(path: string, which: 'latest' | 'all' | bigint): Promise<PlantRevision[]> {
  const reader = await openReader(`sqlite:${path}`);
  try {
    if (typeof which === 'bigint') return await reader.revisionsOf(which);
    const revisions = reader.revisions();
    return await Array.fromAsync(which === 'all' ? revisions : latestOf(revisions));
  } finally {
    await reader.close();
  }
}

/** Runs SQL as an SQL client would, on a connection of its own. */
function sql(path: string, text: string): Record<string, unknown>[] {
  const database = new DatabaseSync(path);
  try {
    return database.prepare(text).all();
  } finally {
    database.close();
  }
}

const ENDS = [
  ID_MIN,
  -(2n ** 53n) - 1n,
  -(2n ** 31n) - 1n,
  -1n,
  0n,
  2n ** 31n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  ID_MAX,
];

test('ids are kept to the digit from end to end', async () => {
  const path = newPath();
  const plants = ENDS.map(id => ({ id, name: `plant ${id}` }));
  await withEngine(path, async engine => {
    const results = await commit(engine, ...plants);
    assert.deepEqual(
      results,
      plants.map(() => ({ outcome: 'created', revision: 1 })),
    );
    // Neighbours that a double cannot tell apart are different plants.
    assert.deepEqual(
      await commit(engine, ...plants),
      plants.map(() => ({ outcome: 'unchanged', revision: 1 })),
    );
  });
  assert.deepEqual(
    (await stored(path, 'all')).map(({ plant }) => plant),
    plants,
  );
  for (const plant of plants)
    assert.deepEqual(
      (await stored(path, plant.id)).map(each => each.plant),
      [plant],
    );
  // As SQLite itself prints them, with no number of JavaScript between.
  const rows = sql(
    path,
    'SELECT CAST(id AS TEXT) AS digits, typeof(id) AS type FROM plant_revision ORDER BY id',
  );
  assert.deepEqual(
    rows.map(({ digits, type }) => `${digits} ${type}`),
    ENDS.map(id => `${id} integer`),
  );
});

test('an id that comes again is created, unchanged or revised, and every revision stays', async () => {
  const path = newPath();
  const before = Date.now();
  await withEngine(path, async engine => {
    const name = 'Ficus lyrata';
    const steps: [NewPlant, WriteResult][] = [
      [
        { id: 5n, name },
        { outcome: 'created', revision: 1 },
      ],
      [
        { id: 5n, name },
        { outcome: 'unchanged', revision: 1 },
      ],
      [
        { id: 5n, name, tag: '' },
        { outcome: 'revised', revision: 2 },
      ],
      [
        { id: 5n, name, tag: '' },
        { outcome: 'unchanged', revision: 2 },
      ],
      [
        { id: 5n, name, tag: 'tree' },
        { outcome: 'revised', revision: 3 },
      ],
      [
        { id: 5n, name: '', tag: 'tree' },
        { outcome: 'revised', revision: 4 },
      ],
      // Back to what it was first: that is not the latest revision, so it is a new one.
      [
        { id: 5n, name },
        { outcome: 'revised', revision: 5 },
      ],
      [
        { id: 6n, name },
        { outcome: 'created', revision: 1 },
      ],
    ];
    for (const [plant, result] of steps) assert.deepEqual(await commit(engine, plant), [result]);
  });
  const revisions = await stored(path, 5n);
  assert.deepEqual(
    revisions.map(({ plant, revision }) => [revision, plant.name, plant.tag]),
    [
      [1, 'Ficus lyrata', undefined],
      [2, 'Ficus lyrata', ''],
      [3, 'Ficus lyrata', 'tree'],
      [4, '', 'tree'],
      [5, 'Ficus lyrata', undefined],
    ],
  );
  assert.ok(!('tag' in revisions[0]!.plant), 'an absent tag stays absent');
  for (const { recordedAt } of revisions) assert.ok(recordedAt >= before && recordedAt <= Date.now());
});

test('the same id several times in one batch is written in the order of the batch', async () => {
  const path = newPath();
  const batch = ['a', 'a', 'b', 'a', 'a'].map(name => ({ id: 1n, name }));
  await withEngine(path, async engine => {
    assert.deepEqual(await commit(engine, { id: 2n, name: 'other' }, ...batch, { id: 2n, name: 'other' }), [
      { outcome: 'created', revision: 1 },
      { outcome: 'created', revision: 1 },
      { outcome: 'unchanged', revision: 1 },
      { outcome: 'revised', revision: 2 },
      { outcome: 'revised', revision: 3 },
      { outcome: 'unchanged', revision: 3 },
      { outcome: 'unchanged', revision: 1 },
    ]);
  });
  assert.deepEqual(
    (await stored(path, 1n)).map(({ plant }) => plant.name),
    ['a', 'b', 'a'],
  );
});

test('with the rule reject the first content stays, and its neighbours in the batch are kept', async () => {
  const path = newPath();
  await withEngine(
    path,
    async engine => {
      const results = await commit(
        engine,
        { id: 1n, name: 'first' },
        { id: 1n, name: 'second' },
        { id: 1n, name: 'first', tag: '' },
        { id: 2n, name: 'neighbour' },
        { id: 1n, name: 'first' },
      );
      assert.deepEqual(results, [
        { outcome: 'created', revision: 1 },
        { refused: 'idTaken' },
        { refused: 'idTaken' },
        { outcome: 'created', revision: 1 },
        { outcome: 'unchanged', revision: 1 },
      ]);
      assert.deepEqual(await commit(engine, { id: 1n, name: 'later' }), [{ refused: 'idTaken' }]);
    },
    'reject',
  );
  assert.deepEqual(
    (await stored(path, 'all')).map(({ plant }) => plant.name),
    ['first', 'neighbour'],
  );
});

test('any text that is UTF-8 comes back as it was', async () => {
  const path = newPath();
  const texts = [
    '',
    ' ',
    "'; DROP TABLE plant_revision; --",
    'a\r\nb\tc',
    '\u{1f335}\u200d\ufeff',
    'é',
    'e\u0301',
    'x'.repeat(1e6),
  ];
  const plants = texts.map((text, index) => ({ id: BigInt(index), name: text, tag: text }));
  await withEngine(path, async engine => {
    await commit(engine, ...plants);
  });
  assert.deepEqual(
    (await stored(path, 'latest')).map(({ plant }) => plant),
    plants,
  );
});

test('a reader gives the store as it was when the first revision was asked for', async () => {
  const path = newPath();
  await withEngine(path, async engine => {
    const plants = Array.from({ length: 5_000 }, (_, index) => ({ id: BigInt(index), name: 'before' }));
    await commit(engine, ...plants);
    const reader = await openReader(`sqlite:${path}`);
    const revisions = reader.revisions();
    // Opened is not asked.
    await commit(engine, { id: -1n, name: 'before' });
    let count = 0;
    for await (const { plant } of revisions) {
      assert.equal(plant.name, 'before');
      if (++count > 1) continue;
      await commit(engine, { id: 4_999n, name: 'behind' }, { id: 5_000n, name: 'behind' });
      await engine.createToken({
        hash: '0'.repeat(64),
        label: 'asked for meanwhile',
        createdAt: 0,
        expiresAt: null,
      });
      await reader.tokens();
    }
    assert.equal(count, 5_001);
    assert.deepEqual(
      (await reader.tokens()).map(({ label }) => label),
      ['asked for meanwhile'],
    );
    assert.equal((await Array.fromAsync(reader.revisions())).length, 5_003);
    await reader.close();
  });
});

test('the tokens of a store are read in the order of ids, with all that is known of them', async () => {
  const path = newPath();
  await withEngine(path, async engine => {
    for (const label of ['c', 'a', 'b']) {
      await engine.createToken({ hash: label.repeat(64), label, createdAt: 1, expiresAt: 2 ** 41 });
    }
    await engine.revokeToken('c', 3);
    await engine.recordTokenUse([2], '2026-01-31');
    const byChange = await engine.tokensChangedSince(0);
    const reader = await openReader(`sqlite:${path}`);
    const tokens = await reader.tokens();
    await reader.close();
    assert.deepEqual(
      tokens.map(({ label }) => label),
      ['c', 'a', 'b'],
    );
    // What came through the writer thread is a copy, with the prototype that rows of node:sqlite have not.
    assert.deepEqual(
      tokens.map(token => ({ ...token })),
      byChange.toSorted((one, other) => one.id - other.id),
    );
  });
});

test('a connection writes ahead and flushes each commit', () => {
  const path = newPath();
  const database = openForWriting(path);
  assert.deepEqual({ ...database.prepare('PRAGMA synchronous').get() }, { synchronous: 2 });
  assert.deepEqual({ ...database.prepare('PRAGMA journal_mode').get() }, { journal_mode: 'wal' });
  database.close();
});

test('no SQL client changes or deletes a revision, and the view plant shows the latest', async () => {
  const path = newPath();
  await withEngine(path, async engine => {
    await commit(
      engine,
      { id: ID_MAX, name: 'old' },
      { id: ID_MAX, name: 'new', tag: 't' },
      { id: 1n, name: 'one' },
    );
  });
  for (const statement of [
    "UPDATE plant_revision SET name = 'other'",
    'UPDATE plant_revision SET recorded_at = 0 WHERE id = 1',
    'DELETE FROM plant_revision',
    'DELETE FROM plant_revision WHERE id = 1',
  ]) {
    assert.throws(() => sql(path, statement), /append-only/, statement);
  }
  const shown = sql(path, 'SELECT CAST(id AS TEXT) AS id, revision, name, tag FROM plant ORDER BY plant.id');
  assert.deepEqual(
    shown.map(row => ({ ...row })),
    [
      { id: '1', revision: 1, name: 'one', tag: null },
      { id: String(ID_MAX), revision: 2, name: 'new', tag: 't' },
    ],
  );
  assert.deepEqual(
    (await stored(path, 'latest')).map(({ plant }) => plant),
    [
      { id: 1n, name: 'one' },
      { id: ID_MAX, name: 'new', tag: 't' },
    ],
  );
});

test('a writer thread that dies takes only its batch with it; the next one starts another', async () => {
  const path = newPath();
  const started = once(process, 'worker') as Promise<[Worker]>;
  await withEngine(path, async engine => {
    const [thread] = await started;
    await commit(engine, { id: 1n, name: 'before' });
    const plants = Array.from({ length: 5_000 }, (_, index) => ({ id: BigInt(index + 2), name: 'at stake' }));
    const atStake = commit(engine, ...plants);
    await Promise.all([assert.rejects(atStake, StoreUnavailable), thread.terminate()]);
    assert.deepEqual(await commit(engine, { id: 1n, name: 'before' }, { id: 0n, name: 'after' }), [
      { outcome: 'unchanged', revision: 1 },
      { outcome: 'created', revision: 1 },
    ]);
  });
  // All of the batch or nothing of it.
  assert.ok([2, 5_002].includes((await stored(path, 'all')).length));
});

test('a copy of the files as a crash leaves them opens with every commit in it', async () => {
  const path = newPath();
  const copy = newPath();
  await withEngine(path, async engine => {
    await commit(engine, { id: 1n, name: 'in the write-ahead log' });
    for (const suffix of ['', '-wal']) copyFileSync(path + suffix, copy + suffix);
  });
  await withEngine(copy, async engine => {
    assert.deepEqual(await commit(engine, { id: 1n, name: 'in the write-ahead log' }), [
      { outcome: 'unchanged', revision: 1 },
    ]);
  });
});
