import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'csv-parse/sync';
import type { NewPlant } from '../../../src/core/contract/plant.ts';
import type { StorageEngine } from '../../../src/engines/storage-engine.ts';
import { loseFlushAtNextInsert } from '../../harness/lost-flush.ts';
import { plantWrite } from '../../harness/plant-write.ts';
import { PostgresProxy } from '../../harness/postgres-proxy.ts';
import { runProgram } from '../../harness/program.ts';
import { databaseName, openStore, postgresUnderTest } from '../../harness/store-under-test.ts';

const under = await postgresUnderTest();
const { server } = under;

const COPY = /^COPY plant_revision\b/;
/** So many new plants are copied. */
const BATCH = 8;

/** A store behind a proxy. Batches of several new plants are copied. */
async function openBehindProxy() {
  const stack = new AsyncDisposableStack();
  const database = await under.newDatabase();
  const proxy = stack.use(await PostgresProxy.start(server.port));
  const store = stack.use(await openStore(proxy.url(database)));
  return { database, proxy, store, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

function commit(store: StorageEngine, plants: readonly NewPlant[]) {
  return store.commit(plants.map(plant => plantWrite(plant, 1)));
}

function batch(first: number): NewPlant[] {
  return Array.from({ length: BATCH }, (_, index) => ({ id: BigInt(first + index), name: `oak ${index}` }));
}

const ALL_CREATED = Array.from({ length: BATCH }, () => ({
  kind: 'confirmed',
  outcome: 'created',
  revision: 1,
}));

/** Parts of the text format of COPY, and what a careless reader of it would change. */
const HOSTILE_TEXTS = [
  ...['\\', '\\\\', '\\N', '\\n', '\\.', '\n\\.\n', '\\t', '\\x41', '\\101', '\\b', 'a\\', '\\N\t\\N'],
  ...['\t', '\n', '\r', '\r\n', '\n\r', '\v', '\f', '\b', '\u0001', '\u001a', '\u007f', '\u0085', '\u2028'],
  ...['', ' ', 'NULL', 'null', '"', '""', "'", "''", ',', ';', '|', '$1', '%s', '{}', '{NULL}', '--', '/*'],
  ...[
    '\ufeff',
    '\ufffd',
    '\uffff',
    '\u{10ffff}',
    '\u{1f335}',
    'e\u0301',
    'ﬁ',
    'ß',
    '日本',
    '\u202e',
    '\u200d',
  ],
  ...['\\\n', '\\\t', '\\\r\\'],
];

test('texts that mean something in the format of COPY are stored and exported as they came', async () => {
  await using opened = await openBehindProxy();
  const long = '\\\t\n'.repeat(100_000);
  const plants: NewPlant[] = [...HOSTILE_TEXTS, long].flatMap((text, index) => {
    const id = BigInt(2 * index);
    const named = { id, name: `${text} oak`, tag: text };
    return [named, text === '' ? { id: id + 1n, name: 'no tag' } : { id: id + 1n, name: text }];
  });
  const results = await commit(opened.store, plants);
  assert.ok(results.every(result => result.kind === 'confirmed' && result.outcome === 'created'));
  assert.ok(opened.proxy.statements.some(text => COPY.test(text)));
  const { stdout } = await runProgram(['export', '--database', opened.database]);
  const rows: string[][] = parse(stdout, {
    cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
  });
  const exported = rows.slice(1).map(([id, name, tag]) => [id, name, tag]);
  assert.deepEqual(
    exported,
    plants.map(({ id, name, tag = null }) => [String(id), name, tag]),
  );
});

const SWALLOW = `CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
  CREATE TRIGGER swallow BEFORE INSERT ON plant_revision FOR EACH ROW EXECUTE FUNCTION act()`;

for (const [change, sql] of [
  ['a trigger that swallows rows', SWALLOW],
  ['a trigger that changes rows', SWALLOW.replace('RETURN NULL', `NEW.name := 'other'; RETURN NEW`)],
  ['an unlogged table', 'ALTER TABLE plant_revision SET UNLOGGED'],
] as const)
  test(`nothing of a batch is confirmed or stored with ${change}, also one that came while it waited`, async () => {
    await using opened = await openBehindProxy();
    const { database, store, proxy } = opened;
    assert.deepEqual(await commit(store, batch(1)), ALL_CREATED);
    const holding = proxy.holdNext(COPY);
    const committing = commit(store, batch(11));
    const held = await holding;
    await server.query(sql, databaseName(database));
    await held.deliver();
    held.respond();
    await assert.rejects(committing, { name: 'StoreUnavailable' });
    await assert.rejects(commit(store, batch(21)), { name: 'StoreUnavailable' });
    const stored = await under.sql(database, 'SELECT count(*)::integer AS count FROM plant_revision');
    assert.deepEqual(stored, [{ count: BATCH }]);
  });

test('a batch whose connection loses synchronous_commit during the COPY is confirmed by another connection', async () => {
  await using opened = await openBehindProxy();
  const { database, store } = opened;
  const untilConnectionEnded = await loseFlushAtNextInsert(sql => under.sql(database, sql));
  assert.deepEqual(await commit(store, batch(1)), ALL_CREATED);
  await untilConnectionEnded();
});

for (const [event, isDelivered] of [
  ['after it was executed', true],
  ['before it arrived', false],
] as const)
  test(`a COPY whose connection is cut ${event} is confirmed, and stored once`, async () => {
    await using opened = await openBehindProxy();
    const { database, store, proxy } = opened;
    const holding = proxy.holdNext(COPY);
    const committing = commit(store, batch(1));
    const held = await holding;
    if (isDelivered) await held.deliver();
    held.cut();
    assert.deepEqual(await committing, ALL_CREATED);
    // The first statement arrives after the second one.
    if (!isDelivered) await held.deliver();
    const stored = await under.sql(database, 'SELECT count(*)::integer AS count FROM plant_revision');
    assert.deepEqual(stored, [{ count: BATCH }]);
  });

test('a connection goes on after a COPY that met a stored key', async () => {
  await using opened = await openBehindProxy();
  const { store, proxy } = opened;
  await commit(store, batch(1));
  const before = proxy.openedConnections;
  const [two, three, ...others] = await commit(store, [...batch(7), ...batch(21)]);
  assert.deepEqual(
    [two, three],
    [
      { kind: 'confirmed', outcome: 'revised', revision: 2 },
      { kind: 'confirmed', outcome: 'revised', revision: 2 },
    ],
  );
  assert.deepEqual(others, [...ALL_CREATED.slice(2), ...ALL_CREATED]);
  assert.equal(proxy.openedConnections, before);
});
