import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { suite, test } from 'node:test';
import { StoreUnavailable } from '../../src/core/commit/store-errors.ts';
import { ID_MAX, ID_MIN } from '../../src/core/contract/limits.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';
import {
  PAGE_PLANTS,
  type PlantFilter,
  type PlantSearch,
  searchAll,
  searchPage,
} from '../../src/engines/search/plant-search.ts';
import { queryRows } from '../../src/engines/sqlite/queries.ts';
import type { StorageEngine } from '../../src/engines/storage-engine.ts';
import type { Query } from '../../src/engines/tables/table-access.ts';
import { openReader, openSearch } from '../harness/open-store.ts';
import { plantWrite } from '../harness/plant-write.ts';
import {
  type EngineUnderTest,
  enginesUnderTest,
  numbered,
  openNewStore,
  pathOf,
  sqliteUnderTest,
} from '../harness/store-under-test.ts';
import { insertSql, type Row } from '../harness/stored-revisions.ts';

const LONG_MS = 60_000;
/** Of the first slice on PostgreSQL. */
const SLICE_ROWS = 2_048;

for (const engine of await enginesUnderTest()) {
  suite(`a search in ${engine.name}`, { concurrency: 2 }, () => testSearch(engine));
}

async function commit(engine: StorageEngine, ...plants: NewPlant[]): Promise<void> {
  // Many revisions of one plant in one batch take PostgreSQL long on a busy machine.
  for (let first = 0; first < plants.length; first += 100) {
    await engine.commit(plants.slice(first, first + 100).map(plant => plantWrite(plant, 1)));
  }
}

function testSearch(under: EngineUnderTest): void {
  test('finds plants by their latest revisions', async () => {
    await using engine = await openNewStore(under);
    const plants: NewPlant[] = [
      { id: ID_MIN, name: 'Ficus lyrata', tag: 'tree' },
      { id: -(2n ** 53n) - 1n, name: 'Ficus', tag: '' },
      { id: -(2n ** 53n), name: 'ficus' },
      { id: 0n, name: '100% a_b\\c\'d"', tag: '%' },
      { id: 1n, name: '100x a_b\\c', tag: '_' },
      { id: 2n, name: '🌳 Árbol', tag: '🌳' },
      { id: 2n ** 53n, name: '', tag: 'tree' },
      { id: 2n ** 53n + 1n, name: 'Ficus', tag: 'Tree' },
      { id: ID_MAX, name: 'Ficus elastica', tag: 'tree' },
    ];
    for (const tag of ['old', 'older'])
      await commit(engine, ...plants.map(({ id }) => ({ id, name: 'Old', tag })));
    await commit(engine, ...plants);
    const cases: [PlantFilter, found: (plant: NewPlant) => boolean][] = [
      [{}, () => true],
      ...plants.flatMap(({ id, name }): typeof cases => [
        [{ id }, each => each.id === id],
        [{ from: id }, each => each.id >= id],
        [{ name }, each => each.name.toLowerCase().includes(name.toLowerCase())],
      ]),
      [{ id: 3n }, () => false],
      [{ id: 1n, from: 2n }, () => false],
      [{ id: 1n, tag: 'tree' }, () => false],
      [{ name: 'Old' }, () => false],
      [{ tag: '' }, ({ tag }) => tag === ''],
      [{ tag: '%' }, ({ id }) => id === 0n],
      [{ tag: 'tree' }, ({ tag }) => tag === 'tree'],
      [{ isUntagged: true }, ({ tag }) => tag === undefined],
      [{ isUntagged: true, tag: 'tree' }, () => false],
      [{ name: '100%' }, ({ id }) => id === 0n],
      [{ name: '100_' }, () => false],
      [{ name: '%' }, ({ id }) => id === 0n],
      [{ name: '_b\\C%' }, () => false],
      [{ name: '100x a_b\\' }, ({ id }) => id === 1n],
      [{ name: '🌳' }, ({ id }) => id === 2n],
      [{ name: 'ARBO\u0301L' }, ({ id }) => id === 2n],
      [{ name: 'cus LYR' }, ({ id }) => id === ID_MIN],
      [{ name: 'LÝ' }, ({ id }) => id === ID_MIN],
      [{ name: 'Fi\0' }, () => false],
      [{ tag: '\ud83c' }, () => false],
      [{ name: 'Ficus', tag: 'tree', from: 0n }, ({ id }) => id === ID_MAX],
      [{ name: 'Ficus', tag: 'tree', id: ID_MIN, from: ID_MIN }, ({ id }) => id === ID_MIN],
    ];
    await using search = await openSearch(engine.database);
    await using reader = await openReader(engine.database);
    for (const [filter, found] of cases) {
      const what = JSON.stringify(filter, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
      const expected = plants.filter(found);
      const { plants: all, next } = await search.page(filter, 50, LONG_MS);
      assert.deepEqual([all.map(({ plant }) => plant), next], [expected, undefined], what);
      for (const { revision } of all) assert.equal(revision, 3);
      const count = await search.count(filter, LONG_MS);
      assert.deepEqual([count.plants, count.next], [expected.length, undefined], what);
      if (filter.id !== undefined) continue;
      const pages: NewPlant[] = [];
      for (let from = filter.from; ; ) {
        const { plants: one, next } = await search.page({ ...filter, from }, 1, LONG_MS);
        pages.push(...one.map(({ plant }) => plant));
        if (next === undefined) break;
        assert.ok(from === undefined || next > from);
        from = next;
      }
      assert.deepEqual(pages, expected, what);
    }
    const revisions = await search.revisionsOf(ID_MAX, 50);
    const shown = revisions.map(({ revision, plant }) => `${revision} ${plant.tag}`);
    assert.deepEqual(shown, ['1 old', '2 older', '3 tree']);
    assert.deepEqual(await search.revisionsOf(ID_MAX, 2), revisions.slice(1));
    assert.deepEqual(await search.revisionsOf(3n, 2), []);
    assert.equal(await search.bytes(), (await reader.size()).bytes);
    await under.sql(engine.database, 'ANALYZE');
    assert.equal(await search.revisions(), 3 * plants.length);
  });

  test('compares names without accents, special letters and signs of hybrids', async () => {
    await using engine = await openNewStore(under);
    const names = [
      'Mentha × piperita',
      'Mentha x piperita L.',
      'Mentha ×piperita',
      'Mentha X\u00a0piperita',
      'Mentha piperita',
      '×Cuprocyparis leylandii',
      'xCuprocyparis',
      'Salix alba',
      'Xanthium',
      'Rødgrød',
      'Łąka STRAßE Œuvre',
      'λωτος λευκοΣ',
      'ΑΚΑΚΊΑ Þistill Жасмин',
      'Salvia Ẍ\u0308 \u0301sylvestris',
      'Ficus \uffff',
    ];
    await commit(engine, ...names.map((name, index) => ({ id: BigInt(index), name })));
    const cases: [part: string, found: number[]][] = [
      ['mentha piperita', [0, 1, 2, 3, 4]],
      ['Mentha x Piperita', [0, 1, 2, 3, 4]],
      ['mentha ×piperita', [0, 1, 2, 3, 4]],
      ['Mentha\u00a0× PIPERITA l', [1]],
      ['mentha ×', [0, 1, 2, 3]],
      ['mentha x ', [0, 1, 3]],
      ['x cuprocyparis', [5, 6]],
      ['xcupro', [5, 6]],
      ['alix alba', [7]],
      ['×', [0, 1, 2, 3, 5, 6, 7, 8, 13]],
      ['x', [0, 1, 2, 3, 5, 6, 7, 8, 13]],
      ['RODGROD', [9]],
      ['laka strasse oeuv', [10]],
      ['straß', [10]],
      ['λευκος', [11]],
      ['λωτοσ', [11]],
      ['ΑΚΑΚΊΑ', [12]],
      ['ακακια þist', [12]],
      ['жАСМИН', [12]],
      ['salvia sylv', [13]],
      ['\ufffd', []],
      ['\uffff', [14]],
    ];
    await using search = await openSearch(engine.database);
    for (const [name, found] of cases) {
      const { plants } = await search.page({ name }, 50, LONG_MS);
      assert.deepEqual(
        plants.map(({ plant }) => Number(plant.id)),
        found,
        name,
      );
    }
  });

  test('finds plants by the time at which their latest revision was recorded', async () => {
    await using engine = await openNewStore(under);
    // The clock of the machine was set back before the last revision of plant 8.
    const rows = [
      [ID_MIN, 1, 1_000],
      [7n, 1, 1_000],
      [7n, 2, 2_000],
      [8n, 1, 3_000],
      [8n, 2, 500],
      [ID_MAX, 1, 8.64e15],
    ] as const;
    await under.sql(
      engine.database,
      insertSql(...rows.map(([id, revision, at]): Row => [id, revision, 'oak', null, at, 1])),
    );
    await using search = await openSearch(engine.database);
    const cases: [since: number, found: bigint[]][] = [
      [-8.64e15, [ID_MIN, 7n, 8n, ID_MAX]],
      [500, [ID_MIN, 7n, 8n, ID_MAX]],
      [501, [ID_MIN, 7n, ID_MAX]],
      [1_001, [7n, ID_MAX]],
      [2_001, [ID_MAX]],
      [8.64e15, [ID_MAX]],
    ];
    for (const [since, found] of cases) {
      const { plants } = await search.page({ since, isUntagged: true }, 50, LONG_MS);
      assert.deepEqual(
        plants.map(({ plant }) => plant.id),
        found,
        String(since),
      );
      assert.equal((await search.count({ since }, LONG_MS)).plants, plants.length);
    }
  });

  test('counts the plants of each tag by their latest revisions', async () => {
    await using engine = await openNewStore(under);
    const long = 'é'.repeat(101);
    const tags = ['tree', undefined, '', 'tree', 'Tree', undefined, long, 'é'.repeat(100), `${long}!`];
    const plants = tags.map((tag, index) => ({
      id: BigInt(index),
      name: 'oak',
      ...(tag === undefined ? {} : { tag }),
    }));
    await commit(engine, ...plants.map(({ id, name }) => ({ id, name, tag: 'old' })));
    await commit(engine, ...plants);
    await using search = await openSearch(engine.database);
    const all = await search.countTags(undefined, LONG_MS);
    assert.deepEqual([...all.tags].toSorted(), [
      ['', 1],
      ['Tree', 1],
      ['tree', 2],
      ['é'.repeat(100), 1],
    ]);
    assert.deepEqual([all.untagged, all.others, all.next], [2, 2, undefined]);
    const { tags: last } = await search.countTags(4n, LONG_MS);
    assert.deepEqual(last.get('tree'), undefined);
  });

  test('ends at its time limit and continues there, also behind a plant with many revisions', async () => {
    await using engine = await openNewStore(under);
    const count = 3 * SLICE_ROWS;
    await commit(engine, ...numbered(count, 'oak'));
    const many = Array.from({ length: SLICE_ROWS + 2 }, (_, index) => ({
      id: BigInt(count),
      name: `revision ${index}`,
    }));
    await commit(engine, ...many, { id: BigInt(count + 1), name: 'last' });
    await using search = await openSearch(engine.database);
    let pages = 0;
    for (let from: bigint | undefined = ID_MIN; from !== undefined; pages++) {
      const page = await search.page({ name: 'none', from }, 50, 0);
      assert.deepEqual(page.plants, []);
      assert.ok(page.next === undefined || page.next > from);
      from = page.next;
    }
    assert.ok(pages > count / SLICE_ROWS, `${pages} pages`);
    const found = await search.page({ name: 're' }, 50, LONG_MS);
    assert.deepEqual(
      found.plants.map(({ revision }) => revision),
      [many.length],
    );
    const full = await search.page({ name: 'oak', from: 10n }, 50, LONG_MS);
    assert.deepEqual([full.plants.length, full.next], [50, 60n]);
    const { plants: oaks } = await search.count({ name: 'oak', from: 10n }, LONG_MS);
    const { untagged } = await search.countTags(10n, LONG_MS);
    assert.deepEqual([oaks, untagged], [count - 10, count - 10 + 2]);
  });

  test('reads a whole store in pages, whose text is limited', async () => {
    await using engine = await openNewStore(under);
    // Searching a long name would take seconds on a busy machine.
    const plants = numbered(2 * PAGE_PLANTS + 7, 'oak').map(({ id, name }) =>
      id < 30n ? { id, name, tag: 'x'.repeat(500_000) } : { id, name },
    );
    for (let first = 0; first < 30; first += 10) await commit(engine, ...plants.slice(first, first + 10));
    await commit(engine, ...plants.slice(30));
    await using search = await openSearch(engine.database);
    const { plants: first, next } = await search.page({}, 50, LONG_MS);
    assert.deepEqual([first.length, next], [16, 16n]);
    const all = (await Array.fromAsync(searchAll(search, { from: 5n, name: 'oak' }))).flat();
    const found = all.map(({ plant }) => plant);
    assert.deepEqual(found, plants.slice(5));
    for (let oak = 1; oak <= 19; oak++) await commit(engine, { ...plants[0]!, name: `oak ${oak}` });
    const last = await search.revisionsOf(0n, 50);
    assert.deepEqual([last.length, last.at(-1)!.revision], [16, 20]);
  });

  test('searches names as long as requests in slices that end in time', async () => {
    await using engine = await openNewStore(under);
    const long = 'é'.repeat(400_000);
    for (const { id } of numbered(16, long)) await commit(engine, { id, name: `${long} ${id}` });
    await commit(engine, { id: 16n, name: 'oak' });
    await using search = await openSearch(engine.database);
    const found = (await Array.fromAsync(searchAll(search, { name: 'e 15' }))).flat();
    assert.deepEqual(
      found.map(({ plant }) => plant.id),
      [15n],
    );
    const { plants } = await search.count({ name: 'oak' }, LONG_MS);
    assert.equal(plants, 1);
    // To compare the part at each place of the name would take seconds.
    await commit(engine, { id: 17n, name: 'a'.repeat(1_000_000) });
    const none = await search.count({ name: `${'a'.repeat(10_000)}b`, from: 17n }, LONG_MS);
    assert.deepEqual([none.plants, none.next], [0, undefined]);
  });

  test('finds plants that were created after it was opened, and closes promptly during a page', async () => {
    await using engine = await openNewStore(under);
    const search = await openSearch(engine.database);
    assert.deepEqual((await search.page({}, 1, LONG_MS)).plants, []);
    await commit(engine, ...numbered(5_000, 'oak'));
    assert.equal((await search.page({ id: 4_999n }, 1, LONG_MS)).plants.length, 1);
    const calls = [search.page({ name: 'none' }, 1, LONG_MS), search.bytes(), search.page({}, 9, 1)];
    const failed = assert.rejects(Promise.all<unknown>(calls), StoreUnavailable);
    await search[Symbol.asyncDispose]();
    await failed;
    await assert.rejects(search.page({}, 1, LONG_MS), StoreUnavailable);
  });
}

test('a page lacks no plant when others are stored between its statements', async () => {
  const under = sqliteUnderTest();
  await using engine = await openNewStore(under);
  await commit(engine, { id: 10n, name: 'oak' }, { id: 20n, name: 'oak' }, { id: 30n, name: 'oak' });
  using database = new DatabaseSync(pathOf(engine.database));
  let statements = 0;
  const query: Query = async (text, values) => {
    // The third statement of a search reads the plants of a slice.
    if (++statements === 3) await commit(engine, { id: 15n, name: 'oak' }, { id: 25n, name: 'oak' });
    return queryRows(database, text, values);
  };
  const store = { query, sliceRows: { min: 100, max: 100 }, nameContains: () => '1' };
  const search = { page: (...args: Parameters<PlantSearch['page']>) => searchPage(store, ...args) };
  const plants = (await Array.fromAsync(searchAll(search))).flat().map(({ plant }) => plant.id);
  assert.deepEqual(plants, [10n, 15n, 20n, 25n, 30n]);
});
