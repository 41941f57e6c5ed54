import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite, test } from 'node:test';
import { BATCH_PLANTS_MAX } from '../../src/core/commit/batch-size.ts';
import type { PlantRevision } from '../../src/core/commit/plant-revision.ts';
import { ID_MAX, ID_MIN } from '../../src/core/contract/limits.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';
import { checkedRevisions, type PlantAt, plantsAt } from '../../src/proof/checked-revisions.ts';
import { openReader } from '../harness/open-store.ts';
import { plantWrite } from '../harness/plant-write.ts';
import {
  commit,
  type EngineUnderTest,
  enginesUnderTest,
  numbered,
  openNewStore,
  openStore,
} from '../harness/store-under-test.ts';
import { storedRevisions, storedRevisionsOf } from '../harness/stored-revisions.ts';

const CREATED = { kind: 'confirmed', outcome: 'created', revision: 1 };
const UNCHANGED = { kind: 'confirmed', outcome: 'unchanged', revision: 1 };
/** Neighbours that are equal as doubles, the limits of 32 bits, and both limits of int64. */
const IDS = [
  ID_MIN,
  -(2n ** 53n) - 1n,
  -(2n ** 53n),
  -(2n ** 31n) - 1n,
  -1n,
  0n,
  2n ** 31n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  ID_MAX,
];

async function latestRevisions(database: string): Promise<PlantRevision[]> {
  await using reader = await openReader(database);
  const plants = await Array.fromAsync(plantsAt(checkedRevisions(reader.revisions()), Infinity));
  return plants.map(each => (each as PlantAt).latest);
}

function plantsOf(revisions: PlantRevision[]): NewPlant[] {
  return revisions.map(({ plant }) => plant);
}

for (const engine of await enginesUnderTest()) {
  suite(`a store in ${engine.name}`, { concurrency: 4 }, () => {
    testIds(engine);
    testOutcomes(engine);
    testTexts(engine);
    testReaders(engine);
  });
}

function testIds(under: EngineUnderTest): void {
  test('stores every digit of ids, from the smallest to the largest', async () => {
    await using engine = await openNewStore(under);
    const plants = IDS.map(id => ({ id, name: `plant ${id}` }));
    assert.deepEqual(
      await commit(engine, ...plants),
      IDS.map(() => CREATED),
    );
    assert.deepEqual(
      await commit(engine, ...plants.toReversed()),
      IDS.map(() => UNCHANGED),
    );
    assert.deepEqual(plantsOf(await storedRevisions(engine.database)), plants);
    // The database converts them to text, so no number of JavaScript is involved.
    const rows = await under.sql(
      engine.database,
      'SELECT CAST(id AS TEXT) AS digits FROM plant_revision ORDER BY plant_revision.id',
    );
    assert.deepEqual(
      rows.map(({ digits }) => digits),
      IDS.map(String),
    );
  });

  test('stores a full batch, and returns each result at its index', async () => {
    await using engine = await openNewStore(under);
    // 7 and 2,048 have no common factor: every id occurs once, in no order.
    const ids = Array.from({ length: BATCH_PLANTS_MAX }, (_, index) =>
      BigInt((index * 7) % BATCH_PLANTS_MAX),
    );
    const known = ids.filter((_, index) => index % 3 === 0);
    await commit(engine, ...known.map(id => ({ id, name: 'known' })));
    const results = await commit(
      engine,
      ...ids.map((id, index) => ({ id, name: index % 2 === 0 ? 'known' : 'new' })),
    );
    assert.deepEqual(
      results,
      ids.map((_, index) => {
        if (index % 3 > 0) return CREATED;
        return index % 2 === 0 ? UNCHANGED : { kind: 'confirmed', outcome: 'revised', revision: 2 };
      }),
    );
    assert.deepEqual(await commit(engine), []);
  });
}

function testOutcomes(under: EngineUnderTest): void {
  test('reports a repeated id as unchanged or revised, and stores every revision', async () => {
    const database = await under.newDatabase();
    const before = Date.now();
    const name = 'Ficus lyrata';
    const steps: [Omit<NewPlant, 'id'>, string, number][] = [
      [{ name }, 'created', 1],
      [{ name }, 'unchanged', 1],
      [{ name, tag: '' }, 'revised', 2],
      [{ name, tag: '' }, 'unchanged', 2],
      [{ name, tag: 'tree' }, 'revised', 3],
      [{ name: '', tag: 'tree' }, 'revised', 4],
      // The first content again: it differs from the latest revision, so it is a new one.
      [{ name }, 'revised', 5],
    ];
    {
      await using engine = await openStore(database);
      for (const [content, outcome, revision] of steps) {
        assert.deepEqual(await commit(engine, { id: 5n, ...content }), [
          { kind: 'confirmed', outcome, revision },
        ]);
      }
      assert.deepEqual(await commit(engine, { id: 6n, name }), [CREATED]);
    }
    const revisions = await storedRevisionsOf(database, 5n);
    const created = steps.filter(([, outcome]) => outcome !== 'unchanged');
    assert.deepEqual(
      revisions.map(({ plant, revision }) => [revision, plant]),
      created.map(([content, , revision]) => [revision, { id: 5n, ...content }]),
    );
    for (const { recordedAt } of revisions) assert.ok(recordedAt >= before && recordedAt <= Date.now());
    assert.deepEqual(await under.sql(database, 'SELECT revision, name, tag FROM plant ORDER BY id'), [
      { revision: 5, name: 'Ficus lyrata', tag: null },
      { revision: 1, name: 'Ficus lyrata', tag: null },
    ]);
    await using opened = await openStore(database);
    assert.deepEqual(await commit(opened, { id: 6n, name: 'Ficus lyrata' }), [UNCHANGED]);
  });

  test('writes the same id several times in one batch in the order of the batch', async () => {
    await using engine = await openNewStore(under);
    const batch = ['a', 'a', 'b', 'a', 'a'].map(name => ({ id: 1n, name }));
    const other = { id: 2n, name: 'other' };
    assert.deepEqual(await commit(engine, other, ...batch, other), [
      CREATED,
      CREATED,
      UNCHANGED,
      { kind: 'confirmed', outcome: 'revised', revision: 2 },
      { kind: 'confirmed', outcome: 'revised', revision: 3 },
      { kind: 'confirmed', outcome: 'unchanged', revision: 3 },
      UNCHANGED,
    ]);
    const again = await commit(engine, ...batch);
    const shown = again.map(result =>
      result.kind === 'confirmed' ? `${result.outcome} ${result.revision}` : result.error,
    );
    assert.equal(shown.join(', '), 'unchanged 3, unchanged 3, revised 4, revised 5, unchanged 5');
    const write = (name: string, recordedBy: number) => plantWrite({ id: 1n, name }, recordedBy);
    await engine.commit([write('a', 3), write('b', 2 ** 40), write('b', 4), write('c', 3)]);
    await engine.commit([write('c', 7)]);
    // Each revision has the token of its first request.
    assert.deepEqual(
      (await storedRevisionsOf(engine.database, 1n)).map(({ plant, recordedBy }) => [plant.name, recordedBy]),
      [...['a', 'b', 'a', 'b', 'a'].map(name => [name, 1]), ['b', 2 ** 40], ['c', 3]],
    );
  });

  test('with the rule reject stores the first content only, and the other plants of the batch', async () => {
    const database = await under.newDatabase();
    {
      await using revising = await openStore(database);
      await commit(revising, { id: 9n, name: 'old' }, { id: 9n, name: 'new' });
    }
    await using engine = await openStore(database, 'reject');
    const results = await commit(
      engine,
      { id: 1n, name: 'first' },
      { id: 1n, name: 'second' },
      { id: 1n, name: 'first', tag: '' },
      { id: 2n, name: 'neighbour' },
      { id: 1n, name: 'first' },
    );
    const rejected = { kind: 'rejected', error: 'idTaken' };
    assert.deepEqual(results, [CREATED, rejected, rejected, CREATED, UNCHANGED]);
    assert.deepEqual(
      await commit(engine, { id: 1n, name: 'later' }, { id: 3n, name: 'new' }, { id: 2n, name: 'neighbour' }),
      [rejected, CREATED, UNCHANGED],
    );
    assert.deepEqual(await commit(engine, { id: 9n, name: 'old' }, { id: 9n, name: 'new' }), [
      rejected,
      { kind: 'confirmed', outcome: 'unchanged', revision: 2 },
    ]);
    assert.deepEqual(
      plantsOf(await storedRevisions(database)).map(({ name }) => name),
      ['first', 'neighbour', 'new', 'old', 'new'],
    );
  });
}

function testTexts(under: EngineUnderTest): void {
  test('returns any text unchanged, and detects a difference in the last character of a long one', async () => {
    await using engine = await openNewStore(under);
    // Random digits, which a database cannot compress much.
    const long = randomBytes(2 ** 19).toString('hex');
    const texts = [
      '',
      ' ',
      "'; DROP TABLE plant_revision; --",
      '$1 $$ \\ \\\\ \\x00 \\u0000 "quoted" \'quoted\' {NULL,"NULL"} NULL',
      Array.from({ length: 0x1f }, (_, code) => String.fromCharCode(code + 1)).join(''),
      '\u007f\u0080\u009f\u2028\u2029',
      'a\r\nb\tc',
      '\u{1f335}\u200d\ufeff\u{10ffff}\uffff',
      // These are displayed alike, but are different texts.
      'é',
      'e\u0301',
      long,
    ];
    const plants = texts.map((text, index) => ({ id: BigInt(index), name: text, tag: text }));
    await commit(engine, ...plants);
    assert.deepEqual(plantsOf(await latestRevisions(engine.database)), plants);
    assert.deepEqual(
      await commit(engine, ...plants),
      plants.map(() => UNCHANGED),
    );
    const other = { id: BigInt(texts.length - 1), name: long, tag: `${long.slice(0, -1)}x` };
    assert.deepEqual(await commit(engine, { id: 8n, name: 'e\u0301', tag: 'é' }, other), [
      { kind: 'confirmed', outcome: 'revised', revision: 2 },
      { kind: 'confirmed', outcome: 'revised', revision: 2 },
    ]);
    assert.deepEqual(plantsOf(await latestRevisions(engine.database)).at(-1), other);
  });
}

function testReaders(under: EngineUnderTest): void {
  test('is read in the state at the read of the first revision', async () => {
    await using engine = await openNewStore(under);
    await commit(engine, ...numbered(5_000, 'before'));
    await using reader = await openReader(engine.database);
    const revisions = reader.revisions();
    // The iteration has not started yet.
    await commit(engine, { id: -1n, name: 'before' });
    let count = 0;
    for await (const { plant } of revisions) {
      assert.equal(plant.name, 'before');
      if (++count > 1) continue;
      await commit(engine, { id: 4_999n, name: 'after' }, { id: 5_000n, name: 'after' });
      await engine.tokenTable.createToken({
        hash: '0'.repeat(64),
        label: 'meanwhile',
        createdAt: 0,
        expiresAt: null,
      });
      await reader.tokens();
    }
    assert.equal(count, 5_001);
    // After an early end the reader can be used again.
    for await (const { plant } of reader.revisions()) {
      assert.equal(plant.id, -1n);
      break;
    }
    assert.equal((await reader.tokens())[0]?.label, 'meanwhile');
    assert.equal((await Array.fromAsync(reader.revisions())).length, 5_003);
  });

  test('is read in the order of ids, then revisions, also with many revisions of an id', async () => {
    await using engine = await openNewStore(under);
    const history = Array.from({ length: 12 }, (_, index) => String(index));
    // Several pages for every reader, with page ends between revisions of an id.
    for (const name of history) await commit(engine, ...numbered(500, name));
    const expected = numbered(500, '').flatMap(({ id }) =>
      history.map((name, index) => `${id} ${index + 1} ${name}`),
    );
    await using reader = await openReader(engine.database);
    for (const from of [undefined, 400n])
      for (const revisions of [reader.revisions(from), reader.revisionsInSlices(from)])
        assert.deepEqual(
          await Array.fromAsync(revisions, ({ plant, revision }) => `${plant.id} ${revision} ${plant.name}`),
          expected.slice(Number(from ?? 0) * history.length),
        );
    assert.deepEqual(plantsOf(await latestRevisions(engine.database)), numbered(500, '11'));
  });
}
