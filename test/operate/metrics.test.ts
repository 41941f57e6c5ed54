import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import packageJson from '../../package.json' with { type: 'json' };
import { QUEUE_PLANTS_MAX } from '../../src/core/commit/group-commit.ts';
import { ERRORS } from '../../src/core/contract/errors.ts';
import { makeToken } from '../../src/core/tokens/token.ts';
import { ask, chunked, RawConnection, type RequestParts, requestBytes } from '../harness/raw-connection.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { responsesIn, type Scrape, scrape } from '../harness/scrape.ts';
import { send } from '../harness/store-outage.ts';
import {
  type EngineUnderTest,
  openTokens,
  postgresUnderTest,
  sqliteUnderTest,
} from '../harness/store-under-test.ts';
import { until } from '../harness/until.ts';

const NAME = 'Quercus-of-the-operator';
const UNKNOWN_TOKEN = makeToken();
const sqlite = sqliteUnderTest();
const postgres = await postgresUnderTest();

interface Board {
  panels: { targets: { expr: string }[] }[];
}

/** Reads the metrics of a service that has stored one plant. */
async function scrapeAfterPlant(engine: EngineUnderTest): Promise<Scrape> {
  await using service = await startTestService({ database: await engine.newDatabase() });
  await using store = await openTokens(service.database);
  for (const [command, hasSucceeded] of [
    ['verify', false],
    ['backup', true],
  ] as const)
    await store.operatorTables.recordRun({ command, endedAt: 5_000, hasSucceeded, result: 'in words' });
  using connection = await RawConnection.open(service.address.port);
  connection.write(requestBytes(service.token));
  assert.equal((await connection.response()).status, 200);
  let read = await scrape(service.opsUrl);
  await until('the runs are known, since a check of the store is shared for a while', async () => {
    read = await scrape(service.opsUrl);
    return read.text.includes('run="backup"');
  });
  return read;
}

const onSqlite = await scrapeAfterPlant(sqlite);
const onPostgres = await scrapeAfterPlant(postgres);

/** Requests, and the result that each must be counted as. */
const REQUESTS: [expected: string, parts: RequestParts][] = [
  ['created', { body: `{"id":1,"name":"${NAME}"}` }],
  ['created', chunked(`{"id":2,"name":"${NAME}"}`)],
  ['unchanged', { body: `{"id":1,"name":"${NAME}"}` }],
  ['unchanged', chunked(`{"id":2,"name":"${NAME}"}`)],
  ['revised', { body: `{"id":1,"name":"${NAME}","tag":"other"}` }],
  ['notJson', { body: `{"id":1,"name":"${NAME}"` }],
  ['notNewPlant', { body: `{"id":1.5,"name":"${NAME}"}` }],
  ['notNewPlant', chunked(`{"name":"${NAME}"}`)],
  ['noCredential', { headers: { Authorization: null } }],
  ['tokenRejected', { headers: { Authorization: `Bearer ${UNKNOWN_TOKEN}` } }],
  ['noSuchPath', { target: `/${NAME}` }],
  ['methodNotAllowed', { method: 'PUT' }],
  ['bodyTooLarge', { headers: { 'Content-Length': '9999999' } }],
  ['notJsonMediaType', { headers: { 'Content-Type': 'text/plain' } }],
  ['contentEncoding', { headers: { 'Content-Encoding': 'gzip' } }],
  ['headersTooLarge', { headers: { 'X-Long': 'x'.repeat(20_000) } }],
  ['plantChanged', { headers: { 'If-Plant-Revision': '9' }, body: `{"id":1,"name":"${NAME}"}` }],
  ['badHttp', { headers: { 'If-Plant-Revision': 'x' } }],
  ['badHttp', { headers: { Host: null } }],
  ['badHttp', { version: '1.1\r\nno field' }],
  ['other', { method: 'GET', target: '/openapi.json', headers: { 'Content-Length': null }, body: '' }],
];

/** Sends several plain creates in one chunk, then each of the table on its own connection. */
async function sendAll({ address, token }: RunningService): Promise<string[]> {
  using pipelined = await RawConnection.open(address.port);
  const bodies = [11, 12, 13].map(id => requestBytes(token, { body: `{"id":${id},"name":"${NAME}"}` }));
  pipelined.write(Buffer.concat(bodies));
  for (const _ of bodies) assert.equal((await pipelined.response()).status, 200);
  for (const [expected, parts] of REQUESTS) {
    const { status } = await ask(address.port, token, parts);
    assert.equal(status, expected in ERRORS ? ERRORS[expected as keyof typeof ERRORS].status : 200, expected);
  }
  return [...bodies.map(() => 'created'), ...REQUESTS.map(([expected]) => expected)];
}

test('/metrics counts every response, on both paths, and contains nothing that clients send', async () => {
  await using service = await startTestService();
  // The first token is cached before it is shown.
  assert.equal((await scrape(service.opsUrl)).values.get('plant_store_tokens'), 1);
  const sent = await sendAll(service);
  const read = await scrape(service.opsUrl);
  const counts = Object.entries(Object.groupBy(sent, result => result));
  assert.deepEqual(
    responsesIn(read),
    Object.fromEntries(counts.map(([result, each]) => [result, each!.length])),
  );
  const stored = sent.filter(result => ['created', 'unchanged', 'revised'].includes(result)).length;
  assert.equal(read.values.get('plant_store_create_duration_seconds_count'), stored);
  assert.equal(read.values.get('plant_store_create_duration_seconds_bucket{le="+Inf"}'), stored);
  assert.ok(read.values.get('plant_store_create_duration_seconds_sum')! > 0);
  const changed = sent.filter(result => result === 'plantChanged').length;
  assert.equal(read.values.get('plant_store_batch_plants_sum'), stored + changed);
  const batches = read.values.get('plant_store_batch_plants_count')!;
  assert.ok(batches < stored + changed, 'requests of one chunk shared a batch');
  assert.equal(read.values.get('plant_store_commit_duration_seconds_count'), batches);
  assert.equal(read.values.get('plant_store_commits_failed_total'), 0);
  for (const secret of [NAME, service.token, UNKNOWN_TOKEN]) assert.ok(!read.text.includes(secret));
  assert.doesNotMatch(read.text, /plant_[0-9A-Za-z]{36}/);
});

for (const { types, values } of [onSqlite, onPostgres]) {
  const isSqlite = values === onSqlite.values;
  test(`/metrics describes a service on ${isSqlite ? 'SQLite' : 'PostgreSQL'} and its state`, () => {
    // As `promtool check metrics` asks for.
    for (const [name, type] of types) assert.equal(name.endsWith('_total'), type === 'counter', name);
    const expected: Record<string, number> = {
      plant_store_in_flight_plants: 0,
      plant_store_in_flight_limit_plants: QUEUE_PLANTS_MAX,
      plant_store_batches_in_flight: 0,
      plant_store_connections: 1,
      plant_store_store_up: 1,
      plant_store_store_warnings: 0,
      plant_store_shutting_down: 0,
      'plant_store_batch_plants_bucket{le="1"}': 1,
      plant_store_tokens_current: 1,
      plant_store_damage_known: 0,
      'plant_store_last_run_timestamp_seconds{run="verify"}': 5,
      'plant_store_last_run_success{run="verify"}': 0,
      'plant_store_last_run_success{run="backup"}': 1,
      ...(isSqlite && { plant_store_flushes_total: 1, plant_store_checkpoint_failing: 0 }),
    };
    const build = `version="${packageJson.version}",node_version="${process.versions.node}"`;
    expected[`plant_store_build_info{${build},engine="${isSqlite ? 'sqlite' : 'postgres'}"}`] = 1;
    for (const [series, value] of Object.entries(expected)) assert.equal(values.get(series), value, series);
    for (const own of ['flush_seconds_total', 'wal_bytes', 'disk_free_bytes'])
      assert.equal((values.get(`plant_store_${own}`) ?? 0) > 0, isSqlite, own);
    assert.equal((values.get('plant_store_store_connections') ?? 0) > 0, !isSqlite);
    for (const ofNode of ['nodejs_eventloop_lag_p99_seconds', 'process_resident_memory_bytes'])
      assert.ok(values.get(ofNode)! > 0, ofNode);
  });
}

const read = (name: string): string =>
  readFileSync(new URL(`../../docs/operate/${name}`, import.meta.url), 'utf8');
const [readme = '', alerts = '', board = ''] = ['README.md', 'alerts.yaml', 'board.json'].map(read);

test('in docs/operate, the alerts, the text and every panel of the board use exported metrics and results', () => {
  const series = [onSqlite, onPostgres].flatMap(({ values }) => [...values.keys()]);
  // A query may use these names. A histogram exports only the names of its series.
  const exported = new Set(series.map(each => each.replace(/\{.*/s, '')));
  const declared = new Set([...exported, ...onSqlite.types.keys()]);
  const METRIC = /\b(?:plant_store|nodejs|process)_[a-z0-9_]*[a-z0-9]\b/g;
  const queries = (JSON.parse(board) as Board).panels.map(({ targets }) =>
    targets.map(({ expr }) => expr).join(),
  );
  assert.ok(queries.length > 0);
  for (const text of [alerts, ...queries]) {
    const names = text.match(METRIC) ?? [];
    assert.deepEqual([names.length > 0, names.filter(name => !exported.has(name))], [true, []], text);
  }
  const named = readme.match(/(?<=`)(?:plant_store|nodejs|process)_\w+(?=`)/g)!;
  assert.deepEqual(
    named.filter(name => !declared.has(name)),
    [],
  );
  const results = [...`${alerts}${board}`.matchAll(/result!?=\\?"(\w+)\\?"/g)].map(([, result]) => result!);
  assert.ok(results.length > 0);
  const isExported = (result: string) => series.some(each => each.includes(`result="${result}"`));
  for (const result of results) assert.ok(isExported(result), result);
});

test('each alert has a section, and there are no other sections', () => {
  const names = [...alerts.matchAll(/^ +- alert: (\w+)$/gm)].map(([, name]) => name!);
  const sections = [...readme.matchAll(/^### (\w+)\n\n\*\*Means\*\*: .+?\n\n\*\*Do\*\*: /gms)];
  const explained = sections.map(([, section]) => section);
  assert.deepEqual(explained, [...new Set(names)], 'in the same order');
});

test('/metrics reports that PostgreSQL is down, until it is up again', async () => {
  await using service = await startTestService({ database: await postgres.newDatabase() });
  // From now on the token is cached, and only the plant needs the store.
  assert.equal((await send(service, { id: 1n, name: 'oak' }, [])).status, 200);
  await postgres.server.kill();
  assert.equal((await send(service, { id: 1n, name: 'oak' }, [])).status, 503);
  const away = await scrape(service.opsUrl);
  assert.equal(away.values.get('plant_store_store_up'), 0);
  assert.ok(!away.values.has('plant_store_store_warnings'), 'its warnings are unknown');
  assert.equal(away.values.get('plant_store_commits_failed_total'), 1);
  assert.deepEqual(responsesIn(away), { created: 1, storeUnavailable: 1 });
  await until('the token cache is not current', async () => {
    return (await scrape(service.opsUrl)).values.get('plant_store_tokens_current') === 0;
  });
  await postgres.server.startAgain();
  await until('the store is up again', async () => {
    const { values } = await scrape(service.opsUrl);
    return values.get('plant_store_store_up') === 1 && values.get('plant_store_tokens_current') === 1;
  });
});
