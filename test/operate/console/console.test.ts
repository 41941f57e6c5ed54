import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { after, suite, test } from 'node:test';
import { hashToken } from '../../../src/core/tokens/token.ts';
import { call, type Json, json, type Operator, sendText, signIn } from '../../harness/console-session.ts';
import { listen } from '../../harness/loopback-server.ts';
import { plantWrite } from '../../harness/plant-write.ts';
import { assertFailed, runProgram } from '../../harness/program.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { enginesUnderTest, openTokens, sqliteUnderTest } from '../../harness/store-under-test.ts';
import { insertSql, type Row } from '../../harness/stored-revisions.ts';
import { until } from '../../harness/until.ts';

const CSV_HEADER = 'id,revision,name,tag,recorded_at,recorded_by\n';

/** Starts a service with a console; without a database, on a new SQLite file. */
function start(database?: string): Promise<RunningService> {
  return startTestService({
    ...(database !== undefined && { database }),
    console: { database: 'the store', settings: [['listen', '127.0.0.1:8080', 'default']] },
  });
}

const sqlite = sqliteUnderTest();

suite('the console and its store', async () => {
  const service = await start(await sqlite.newDatabase());
  const operator = await signIn(service);
  after(() => service[Symbol.asyncDispose]());

  test('shows plants with exact ids and their revisions, and finds them by each field', async () => {
    for (const body of [
      '{"id":-9223372036854775808,"name":"Acer campestre"}',
      '{"id":7,"name":"Acer platanoides","tag":"a_b%"}',
      '{"id":7,"name":"Acer platanoides","tag":""}',
      '{"id":9223372036854775807,"name":"Ölweide","tag":"tree"}',
    ])
      assert.equal(await sendText(service, body), 200);
    const SEARCHES: [query: string, ids: string[]][] = [
      ['', ['-9223372036854775808', '7', '9223372036854775807']],
      ['id=9223372036854775807', ['9223372036854775807']],
      ['id=8', []],
      ['name=Acer%20', ['-9223372036854775808', '7']],
      ['name=Acer%20p', ['7']],
      ['name=PLATAN', ['7']],
      ['name=olweide', ['9223372036854775807']],
      ['tag=tree', ['9223372036854775807']],
      ['tag=a_b%25', []],
      ['untagged=1', ['-9223372036854775808']],
      ['from=8', ['9223372036854775807']],
      ['since=8640000000000000', []],
      ['outcome=revised', ['7']],
      ['outcome=created&id=7', []],
      ['since=-1', ['-9223372036854775808', '7', '9223372036854775807']],
      ['since=2026-05-01T14:30%2B02:00&id=7', ['7']],
    ];
    for (const [query, ids] of SEARCHES) {
      const page = await json(operator, `plants?${query}`);
      assert.deepEqual([page.plants.map((plant: Json) => plant.id), page.next], [ids, null], query);
    }
    const { searched, ...count } = await json(operator, 'plants/count?name=ACER&from=-9223372036854775807');
    assert.deepEqual([count, searched > 0], [{ plants: 1, next: null }, true]);
    const tags = await json(operator, 'tags');
    assert.deepEqual(
      [tags.tags, tags.untagged, tags.others, tags.next],
      [
        [
          ['', 1],
          ['tree', 1],
        ],
        1,
        0,
        null,
      ],
    );
    assert.deepEqual(await json(operator, 'revisions/count'), { revisions: 4 });
    const newest = (await json(operator, 'newest')).plants;
    assert.deepEqual(
      newest.map(({ id, name, tag, outcome, label }: Json) => [id, name, tag, outcome, label]),
      [
        ['9223372036854775807', 'Ölweide', 'tree', 'created', 'first'],
        ['7', 'Acer platanoides', '', 'revised', 'first'],
        ['7', 'Acer platanoides', 'a_b%', 'created', 'first'],
        ['-9223372036854775808', 'Acer campestre', undefined, 'created', 'first'],
      ],
    );
    const { revisions, docs } = await json(operator, 'revisions?id=7');
    assert.equal(docs, `${service.url}/docs`);
    assert.deepEqual(
      revisions.map(({ revision, tag, recordedBy }: Json) => [revision, tag, recordedBy]),
      [
        [1, 'a_b%', 'first'],
        [2, '', 'first'],
      ],
    );
    const csv = await (await call(operator, 'GET', 'plants.csv?name=Acer&since=1')).text();
    assert.equal(await (await call(operator, 'GET', `plants.csv?since=${8.64e15}`)).text(), CSV_HEADER);
    const later = await json(operator, `plants/count?since=${8.64e15}`);
    assert.equal(later.plants, 0);
    assert.match(
      csv,
      /^id,revision,name,tag,recorded_at,recorded_by\n-9223372036854775808,1,Acer campestre,,.*,first\n7,2,/,
    );
    assert.equal(csv.split('\n').length, 4);
    for (const path of ['plants', 'revisions'])
      assert.equal((await call(operator, 'GET', `${path}?id=9223372036854775808`)).status, 422);
    assert.equal((await call(operator, 'GET', 'plants?outcome=unchanged')).status, 422);
    for (const since of ['today', '8640000000000001', '2026-05-01', '1e3'])
      assert.equal((await call(operator, 'GET', `plants?since=${since}`)).status, 422, since);
    assert.equal((await call(operator, 'GET', 'revisions?id=9')).status, 404);
    // A copied revision may contain the id of a token that this store lacks.
    await sqlite.sql(service.database, insertSql([8, 1, 'Oak', null, 1, 99]));
    assert.equal((await json(operator, 'revisions?id=8')).revisions[0].recordedBy, '99');
    const many = Array.from({ length: 501 }, (_, index) => index + 1);
    await sqlite.sql(service.database, insertSql(...many.map((r): Row => [9, r, 'Oak', null, 1, 1])));
    const shown = (await json(operator, 'revisions?id=9')).revisions.map(({ revision }: Json) => revision);
    assert.deepEqual([shown.length, shown[0], shown.at(-1)], [500, 2, 501]);
    // Of many long names in memory, only the beginnings remain.
    const long = `{"id":7,"name":"${'z'.repeat(199)}🌿${'z'.repeat(5_000)}","tag":"old"}`;
    assert.equal(await sendText(service, long), 200);
    const [{ name, tag }] = (await json(operator, 'newest')).plants;
    assert.deepEqual([name, tag], [`${'z'.repeat(199)}\ufffd…`, 'old']);
  });

  test('creates and revokes tokens, which take effect', async () => {
    const created = await call(operator, 'POST', 'tokens', { label: 'field app' });
    assert.equal(created.status, 201);
    const { token } = (await created.json()) as { token: string };
    assert.equal(await sendText(service, '{"id":1,"name":"x"}', token), 200);
    assert.equal((await call(operator, 'POST', 'tokens', { label: 'field app' })).status, 409);
    assert.equal((await call(operator, 'POST', 'tokens', { label: ' ' })).status, 422);
    for (const expiresAt of [1, 8.64e15 + 1, '9'])
      assert.equal((await call(operator, 'POST', 'tokens', { label: 'old', expiresAt })).status, 422);
    const later = await call(operator, 'POST', 'tokens', { label: 'later', expiresAt: 8.64e15 });
    assert.equal(later.status, 201);
    const beyond = `UPDATE token SET expires_at = 9007199254740991 WHERE label = 'later'`;
    await sqlite.sql(service.database, beyond);
    assert.equal((await call(operator, 'POST', 'tokens/revoke', { label: 'field app' })).status, 204);
    const isRejected = async () => (await sendText(service, '{"id":1,"name":"x"}', token)) === 401;
    await until('the token is rejected', isRejected);
    const { tokens } = await json(operator, 'tokens');
    const { label, revokedAt } = tokens.find((each: Json) => each.label === 'field app');
    assert.ok(label && revokedAt > 0);
    assert.equal(tokens.find((each: Json) => each.label === 'later').expiresAt, null);
    assert.ok(!JSON.stringify(tokens).includes(token));
  });

  test('shows since when it runs, the free disk, and the last backup', async () => {
    // Of its own, since a service reads only once how old its store is.
    await using service = await start(await sqlite.newDatabase());
    const operator = await signIn(service);
    await sqlite.sql(service.database, insertSql([1, 1, 'Oak', null, 1, 1]));
    const facts = async () => {
      // The readiness, which the page also reads all the time, refreshes what is known.
      await fetch(`${service.opsUrl}/readyz`);
      return new Map<string, Json>(
        (await json(operator, 'store')).rows.map(({ label, ...fact }: Json) => [label, fact]),
      );
    };
    const statistics = async () => (await json(operator, 'now')).statistics;
    const shown = await facts();
    assert.match(shown.get('Started').text, /^the first start on this store, version [\d.]+$/);
    assert.ok(Math.abs(shown.get('Started').at - Date.now()) < 600_000);
    assert.match(shown.get('Free on the disk').text, /^[\d,.]+ [GM]B of [\d,.]+ [GM]B$/);
    const { text, advice } = shown.get('Last backup');
    assert.deepEqual(
      [text, advice.command],
      ['none yet', "npx plant-store backup FILE --database 'the store'"],
    );
    assert.match(advice.note, /^For FILE, write the name of a new file/);
    // A test before this one has stored a plant of the year 1970. The service learns of it later.
    await until('a backup is due', async () => {
      await facts();
      return (await statistics()).backup.state === 'warning';
    });
    const { disk, backup } = await statistics();
    assert.deepEqual([disk.kind, disk.trend.kind, backup.kind], ['known', 'unknown', 'none']);
    assert.ok(disk.freeBytes > 0 && disk.freeBytes <= disk.bytes);
    await using command = await openTokens(service.database);
    for (const days of [1, 2]) {
      const endedAt = Date.now() - days * 86_400_000;
      const text = `backup ${days}`;
      await command.operatorTables.recordRun({
        command: 'backup',
        endedAt,
        hasSucceeded: true,
        result: text,
      });
      await until('the run is known', async () => (await facts()).get('Last backup').text === text);
      assert.deepEqual((await facts()).get('Last backup'), { text, at: endedAt });
      assert.deepEqual((await statistics()).backup, {
        kind: 'run',
        state: 'well',
        endedAt,
        text,
      });
      assert.equal((await json(operator, 'now')).runs[0].endedAt, endedAt);
    }
  });

  test('downloads a large store, and ends the connection if the store fails during a download', async () => {
    const name = 'x'.repeat(100_000);
    await using store = await openTokens(service.database);
    for (let first = 100_000; first < 100_160; first += 40) {
      const plants = Array.from({ length: 40 }, (_, index) => ({ id: BigInt(first + index), name }));
      await store.commit(plants.map(plant => plantWrite(plant, 1)));
    }
    const complete = await (await call(operator, 'GET', 'plants.csv?name=xx')).text();
    assert.equal(complete.match(/\n/g)!.length, 161);
    const { body } = await call(operator, 'GET', 'plants.csv?name=xx');
    const chunks = body!.getReader();
    await chunks.read();
    await sqlite.sql(service.database, 'ALTER TABLE plant_revision RENAME TO gone');
    await assert.rejects(async () => {
      while (!(await chunks.read()).done);
    });
    assert.ok(service.logged.includes('a request of the console failed'));
    assert.equal((await call(operator, 'GET', 'plants')).status, 503);
    // The rest of the screen Store does not need this table.
    await sqlite.sql(service.database, 'ALTER TABLE last_run RENAME TO gone_too');
    assert.equal((await json(operator, 'store')).rows[0].label, 'Store');
  });
});

suite('the console', () => {
  test('lets nobody in without a session, from another origin or by another host name', async () => {
    await using service = await start();
    const operator = await signIn(service);
    const { cookie, secret } = operator;
    const another = await signIn(service);
    const foreign = { Origin: 'http://evil.example' };
    const CASES: [what: string, status: number, response: Promise<Response>][] = [
      ['no session', 401, call({ service }, 'GET', 'tokens')],
      ['another cookie', 401, call({ service, cookie: 'plant_store_console=x', secret }, 'GET', 'tokens')],
      ['the cookie alone', 401, call({ service, cookie }, 'GET', 'tokens')],
      ['the header alone', 401, call({ service, secret }, 'GET', 'tokens')],
      ['the header of another session', 401, call({ ...another, cookie }, 'GET', 'tokens')],
      ['a wrong code', 403, call({ service }, 'POST', 'session', { code: 'A'.repeat(43) })],
      ['another origin', 403, call(operator, 'POST', 'tokens', { label: 'x' }, foreign)],
      ['no origin', 403, call(operator, 'POST', 'tokens', { label: 'x' }, { Origin: '' })],
      ['a code that is no text', 403, call({ service }, 'POST', 'session', { code: { toString: 1 } })],
      ['a label that is no text', 422, call(operator, 'POST', 'tokens/revoke', { label: { toString: 1 } })],
      ['a label that no token can have', 422, call(operator, 'POST', 'tokens/revoke', { label: 'a\0b' })],
      ['a long body', 422, call(operator, 'POST', 'tokens', { label: 'x'.repeat(20_000) })],
      ['no such path', 404, call(operator, 'GET', 'nothing')],
      ['another method', 404, call(operator, 'PUT', 'tokens', {})],
    ];
    for (const [what, status, response] of CASES) assert.equal((await response).status, status, what);
    assert.deepEqual(
      (await json(operator, 'tokens')).tokens.map((each: Json) => each.label),
      ['first'],
    );
    const options = { headers: { Host: 'evil.example', Cookie: cookie, 'Plant-Store-Console': secret } };
    const rebound = request(`${service.opsUrl}/console/api/tokens`, options).end();
    const [{ statusCode }] = await once(rebound, 'response');
    assert.equal(statusCode, 421);
    const signedOut = await call(operator, 'DELETE', 'session');
    // RFC 9110 section 8.6 forbids the length.
    assert.deepEqual([signedOut.status, signedOut.headers.get('Content-Length')], [204, null]);
    assert.equal((await call(operator, 'GET', 'tokens')).status, 401);
  });

  test('takes each code once, also in a race, and codes of the command line', async () => {
    await using service = await start();
    const { database } = service;
    const code = await service.makeConsoleCode!();
    const race = await Promise.all(
      Array.from({ length: 6 }, () => call({ service }, 'POST', 'session', { code })),
    );
    assert.equal(race.filter(({ ok }) => ok).length, 1);
    const since = performance.now();
    for (let guess = 0; guess < 5; guess++)
      assert.equal((await call({ service }, 'POST', 'session', { code: `wrong ${guess}` })).status, 403);
    assert.ok(performance.now() - since > 4 * 190, 'guesses ask the store a few times per second');
    const ops = service.opsUrl.replace('http://', '');
    const printLink = (...args: string[]) => runProgram(['console', '--database', ...args]);
    const { stdout, stderr, exitCode } = await printLink(database, '--ops', ops);
    assert.deepEqual([exitCode, stderr], [0, '']);
    await signIn(service, new URL(stdout.trim()).hash.slice(1));
    await using hanging = await listen(createServer(socket => socket.resume()));
    const withoutResponse = await printLink(database, '--ops', String(hanging.port));
    assert.match(withoutResponse.stderr, /^WARNING: no service responds there/);
    await signIn(service, new URL(withoutResponse.stdout.trim()).hash.slice(1));
    await using without = await startTestService();
    const otherOps = without.opsUrl.replace('http://', '');
    const off = await printLink(without.database, '--ops', otherOps);
    assertFailed(off, /start it with --console on/);
    for (const path of ['/console/', '/console/api/now', '/'])
      assert.equal((await fetch(without.opsUrl + path, { redirect: 'manual' })).status, 404);
  });
});

for (const engine of await enginesUnderTest()) {
  test(`a session survives a restart in ${engine.name}, and its end, too`, async () => {
    const database = await engine.newDatabase();
    await using first = new AsyncDisposableStack();
    const before = first.use(await start(database));
    const [stays, ends] = [await signIn(before), await signIn(before)];
    // A SQLite store has one service at a time.
    const another = engine.name === 'SQLite' ? before : first.use(await start(database));
    const secretOf = ({ cookie, secret }: Operator) => `${cookie!.split('=')[1]} ${secret}`;
    const CODES = [secretOf(stays), `session:${secretOf(stays)}`, `session:${hashToken(secretOf(stays))}`];
    /** The operator at another service. The name of the cookie contains the port. */
    const operatorAt = (service: RunningService, { cookie, secret }: Operator): Operator => {
      return { service, cookie: cookie!.replace(/\d+=/, `${service.opsAddress.port}=`), secret };
    };
    const at = async (service: RunningService, operator: Operator): Promise<number> =>
      (await call(operatorAt(service, operator), 'GET', 'tokens')).status;
    assert.deepEqual([await at(another, stays), await at(another, ends)], [200, 200]);
    // Requests that begin before the end must not bring the session back.
    const racing = Array.from({ length: 20 }, () => at(before, ends));
    assert.equal((await call(ends, 'DELETE', 'session')).status, 204);
    await Promise.all(racing);
    await until('the other instance notices the end', async () => (await at(another, ends)) === 401);
    await first.disposeAsync();
    // The plots have samples of earlier starts.
    assert.equal(existsSync(`${database.slice('sqlite:'.length)}-history`), engine.name === 'SQLite');
    await using restarted = await start(database);
    const { facts } = await json(operatorAt(restarted, stays), 'now');
    assert.match(facts.find(({ label }: Json) => label === 'Started').text, /^version [\d.]+$/);
    assert.deepEqual([await at(restarted, stays), await at(restarted, ends)], [200, 401]);
    const { cookie, secret } = stays;
    assert.equal(await at(restarted, { service: restarted, cookie, secret: '' }), 401);
    assert.equal(await at(restarted, { service: restarted, cookie: 'plant_store_console1=x', secret }), 401);
    for (const code of CODES)
      assert.equal((await call({ service: restarted }, 'POST', 'session', { code })).status, 403);
    assert.equal(await at(restarted, stays), 200);
  });
}
