import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  call,
  headersOf,
  type Json,
  json,
  type Operator,
  sendText,
  signIn,
  urlOf,
} from '../../harness/console-session.ts';
import { ask, chunked, RawConnection, requestBytes } from '../../harness/raw-connection.ts';
import { addToken, type RunningService, startTestService } from '../../harness/running-service.ts';
import { until } from '../../harness/until.ts';

/** Tests are a proxy at 127.0.0.1, before another one at 10.0.0.1. */
async function start(): Promise<RunningService> {
  const console = { database: 'the store', settings: [] };
  return await startTestService({ console, trustedProxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'] });
}

async function groups(operator: Operator): Promise<Json[]> {
  return (await json(operator, 'rejected')).groups;
}

/** Of the group with the newest request. */
async function examples(operator: Operator): Promise<Json[]> {
  const [{ key }] = await groups(operator);
  return (await json(operator, `rejected/examples?${new URLSearchParams({ key })}`)).examples;
}

suite('rejected requests in the console', () => {
  test('are counted by error, token and client, behind proxies that are trusted', async () => {
    await using service = await start();
    const { port } = service.address;
    const operator = await signIn(service);
    const revoked = await addToken(service.database, 'old app');
    await until('the token is valid', async () => (await sendText(service, '{}', revoked)) === 400);
    await call(operator, 'POST', 'tokens/revoke', { label: 'old app' });
    const CASES: [forwardedFor: string | string[] | null, address: string][] = [
      [null, '127.0.0.1'],
      ['192.0.2.7', '192.0.2.7'],
      ['203.0.113.1, 192.0.2.8, 10.0.0.1', '192.0.2.8'],
      [['192.0.2.9', '10.0.0.1'], '192.0.2.9'],
      ['2001:db8::1,fd00::2', '2001:db8::1'],
      ['192.0.2.11, unknown, 10.0.0.1', '10.0.0.1'],
      ['fe80::1%any text, 10.0.0.4', '10.0.0.4'],
      ['10.0.0.3, 10.0.0.2', '10.0.0.3'],
      ['::ffff:10.0.0.1', '::ffff:10.0.0.1'],
    ];
    for (const [forwardedFor, address] of CASES) {
      const headers = { 'X-Forwarded-For': forwardedFor };
      // The first one is a plain create, and a handler reads the others.
      await ask(port, service.token, { headers, body: '[]' });
      const inChunks = chunked('[]');
      await ask(port, service.token, { body: inChunks.body!, headers: { ...headers, ...inChunks.headers } });
      await ask(port, revoked, { headers });
      await ask(port, service.token, { headers: { ...headers, 'Content-Type': 'text/plain' } });
      const newest = (await groups(operator)).slice(0, 3);
      assert.deepEqual(
        newest.map(({ error, label, count, address: shown }) => [error, label, count, shown]),
        [
          [41501, 'first', 1, address],
          [40102, 'old app', 1, address],
          [40002, 'first', 2, address],
        ],
        String(forwardedFor),
      );
      const [unread] = await examples(operator);
      assert.deepEqual([unread.contentType, unread.bodyBytes], ['text/plain', null]);
    }
    const old = (await groups(operator)).find(({ label }) => label === 'old app');
    assert.equal(old.tokenFault, 'revoked');
    using connection = await RawConnection.open(port);
    connection.write('no HTTP\r\n\r\n');
    await connection.response();
    const [{ error, label, address }] = await groups(operator);
    assert.deepEqual([error, label, address], [40000, null, '127.0.0.1']);
  });

  test('leave out a test of import, and tell how long a rejected body is', async () => {
    await using service = await start();
    const operator = await signIn(service);
    const { port } = service.address;
    for (const revision of ['one', 'test']) {
      await ask(port, service.token, { headers: { 'If-Plant-Revision': revision }, body: '{}' });
      const [newest] = await groups(operator);
      assert.deepEqual([newest.error, newest.count], [40000, 1], revision);
      const [{ errors }] = (await json(operator, 'now')).busiest;
      assert.deepEqual([(await json(operator, 'rejected')).count, errors], [1, 1], revision);
    }
    assert.equal(await sendText(service, 'x'.repeat(1024 * 1024 + 1)), 413);
    const [{ key }] = await groups(operator);
    const { bodyBytesMax, examples: all } = await json(
      operator,
      `rejected/examples?${new URLSearchParams({ key })}`,
    );
    assert.deepEqual(
      [bodyBytesMax, all[0].bodyBytes, all[0].declaredBytes],
      [1024 * 1024, null, 1024 * 1024 + 1],
    );
  });

  test('have the most frequent reason first, and the plant of each example', async () => {
    await using service = await start();
    const operator = await signIn(service);
    const { port } = service.address;
    assert.equal(await sendText(service, '{"id":5,"name":"Acer"}'), 200);
    const [byList, meanwhile] = [/^a list wanted to change a plant.* --replace/, /^somebody else changed/];
    const CASES: [body: string, revision: string | null, plantId: string, reason: RegExp][] = [
      ['{"id":-9223372036854775808}', null, '-9223372036854775808', /^name is required$/],
      ['{"tag":5,"id":"7"}', null, '7', /^name is required$|id must be/],
      ['{"id":8}', null, '8', /^name is required$/],
      ['{"a":{"id":6},"name":"x"}', null, '', /^name is required$/],
      ['{"id":9223372036854775808,"name":"x"}', null, '', /^name is required$/],
      ['{ "id" : 6 , "name"', null, '6', /^the body is empty or not valid JSON/],
      ['{"id":5,"name":"oak"}', '0', '5', byList],
      ['{"id":5,"name":"oak"}', '2', '5', byList],
      ['{"id":5,"name":"elm"}', '2', '5', meanwhile],
      ['{"id":5,"name":"elm"}', '3', '5', meanwhile],
    ];
    for (const [body, revision, plantId, reason] of CASES) {
      await ask(port, service.token, { headers: { 'If-Plant-Revision': revision }, body });
      const [{ reasons }] = await groups(operator);
      const counts = reasons.map(([, count]: Json) => count);
      assert.deepEqual(
        counts,
        counts.toSorted((a: number, b: number) => b - a),
      );
      assert.match(reasons[0][0], reason, body);
      const [newest] = await examples(operator);
      assert.deepEqual([newest.plantId, newest.body], [plantId, null], body);
    }
    // Of the last five requests, and each plant once.
    assert.deepEqual((await groups(operator))[0].plantIds, ['5']);
    // Reasons that only name another plant are the same, and a client cannot make many of them.
    for (let id = 100; id < 130; id++) {
      const body = `{"id":${id},"name":"oak"}`;
      await ask(port, service.token, { headers: { 'If-Plant-Revision': '9' }, body });
    }
    const [{ key, reasons, count, plantIds }] = await groups(operator);
    assert.deepEqual([count, reasons.map(([, of]: Json) => of)], [34, [33, 1]]);
    assert.deepEqual(plantIds, ['129', '128', '127']);
    // The examples come with the group of the same time.
    const { group } = await json(operator, `rejected/examples?${new URLSearchParams({ key })}`);
    assert.deepEqual([group.count, group.plantIds], [34, plantIds]);
  });

  test('have a limit of groups, and each group has its last examples', async () => {
    await using service = await start();
    const operator = await signIn(service);
    using connection = await RawConnection.open(service.address.port);
    for (let client = 0; client < 400; client++) {
      const headers = { 'X-Forwarded-For': `192.0.${client >> 8}.${client & 255}` };
      connection.write(requestBytes(service.token, { headers, body: '[]' }));
    }
    for (let client = 0; client < 400; client++) await connection.response();
    for (let size = 2; size < 12; size++) await sendText(service, '['.padEnd(size));
    const { count, groups: all } = await json(operator, 'rejected');
    assert.equal(count, 410);
    assert.equal(
      all.reduce((sum: number, group: Json) => sum + group.count, 0),
      410,
    );
    assert.equal(all.length, 300);
    const others = all.filter((group: Json) => group.address === undefined);
    assert.deepEqual(
      others.map((group: Json) => group.error),
      [40002],
    );
    assert.deepEqual(
      (await examples(operator)).map(example => example.bodyBytes),
      [11, 10, 9, 8, 7],
    );
  });

  test('show bodies while that is switched on, with the fault and without tokens', async () => {
    await using service = await start();
    const operator = await signIn(service);
    assert.equal(await sendText(service, '{"id":1}'), 400);
    assert.equal((await examples(operator))[0].body, null);
    assert.equal((await call(operator, 'POST', 'rejected', { isOn: true })).status, 204);
    const CASES: [body: string | Uint8Array<ArrayBuffer>, shown: string, fault: string | undefined][] = [
      ['{"id":1,"name":"x",}', '{"id":1,"name":"x",}', '}'],
      ['{"id":+1}', '{"id":+1}', '+1}'],
      ['[object Object]', '[object Object]', 'object Object]'],
      [
        '{"id":"5","name":"</script><img src=x onerror=alert(1)>"}',
        '{"id":"5","name":"</script><img src=x onerror=alert(1)>"}',
        undefined,
      ],
      [Buffer.from('7b226964223a31ff7d', 'hex'), '{"id":1\udcff}', '\udcff}'],
      [Buffer.from('{"name":"\u0000\u001b[31m"}'), '{"name":"\0\u001b[31m"}', '\0\u001b[31m"}'],
      [`{"token":"${service.token}"}`, '{"token":"plant_…"}', undefined],
      [`{"token":"${service.token}",}`, '{"token":"plant_…",}', '}'],
      ['{"a":"Bearer eyJhbGciOiJFUzI1NiJ9.eyJpc3M_-0.c2ln_-0",}', '{"a":"Bearer eyJ…",}', '}'],
      [Buffer.from('"eyJhbGciOiJFUzI1NiJ9.eyJ9.c"', 'utf16le'), '"\0eyJ…\0"\0', '\0eyJ…\0"\0'],
      [Buffer.from(`"${service.token}"`, 'utf16le'), '"\0plant_…\0"\0', '\0plant_…\0"\0'],
      [`{"name":"${'ö'.repeat(3_000)}`, `{"name":"${'ö'.repeat(995)}`, undefined],
      [`{"name":"${'x'.repeat(1_986)}\\u00e9",}`, `{"name":"${'x'.repeat(1_986)}\\u00e`, undefined],
      [`{,"a":"${'ö'.repeat(3_000)}`, `{,"a":"${'ö'.repeat(996)}`, `,"a":"${'ö'.repeat(996)}\udcc3`],
    ];
    for (const [body, shown, fault] of CASES) {
      assert.equal(await sendText(service, body), 400);
      const [newest] = await examples(operator);
      assert.equal(newest.body.replace(/\udcc3$/, ''), shown);
      assert.equal(newest.faultAt === null ? undefined : newest.body.slice(newest.faultAt), fault, shown);
      assert.equal(newest.requestLine, 'POST /plants');
    }
    await fetch(`${service.url}/plants/${service.token}`, { headers: { 'Content-Type': service.token } });
    const [atOtherPath] = await examples(operator);
    assert.deepEqual([atOtherPath.requestLine, atOtherPath.contentType], ['GET /plants/plant_…', 'plant_…']);
    await call(operator, 'POST', 'rejected', { isOn: false });
    await sendText(service, '[');
    for (const each of await examples(operator)) assert.equal(each.body, null);
  });

  test('keep their bodies unless a valid request switches that off, also in chunks', async () => {
    await using service = await start();
    const operator = await signIn(service);
    const sendChunked = async (...chunks: string[]): Promise<number> => {
      const body = ReadableStream.from(chunks).pipeThrough(new TextEncoderStream());
      const init = { method: 'POST', body, duplex: 'half' as const, headers: headersOf(operator) };
      return (await fetch(urlOf(operator, 'rejected'), init)).status;
    };
    assert.equal(await sendChunked('{"isOn":', 'true}'), 204);
    assert.equal(await sendText(service, '{"id":1}'), 400);
    for (const body of [[], {}, { isOn: 0 }]) {
      assert.equal((await call(operator, 'POST', 'rejected', body)).status, 422, JSON.stringify(body));
    }
    for (const body of ['', '[]', 'null', '{"isOn":false', `{"isOn":false,"a":"${'x'.repeat(10_000)}"}`]) {
      assert.equal(await sendChunked(body), 422, body);
    }
    assert.equal((await examples(operator))[0].body, '{"id":1}');
    assert.equal(await sendChunked('{"isOn":false}'), 204);
    assert.equal((await examples(operator))[0].body, null);
  });
});

test('the console shows the busiest tokens of the last minute, and the time when each was last used', async () => {
  await using service = await start();
  const startedAt = Date.now();
  const operator = await signIn(service);
  const other = await addToken(service.database, 'other');
  for (let id = 1; id <= 30; id++) await sendText(service, `{"id":${id},"name":"Acer"}`);
  await sendText(service, '[]');
  for (let count = 0; count < 3; count++) await sendText(service, '{', other);
  const { busiest } = await json(operator, 'now');
  assert.deepEqual(
    busiest.map(({ label, plants, errors }: Json) => [label, plants, errors]),
    [
      ['first', 30, 1],
      ['other', 0, 3],
    ],
  );
  await addToken(service.database, 'unused');
  const { tokens } = await json(operator, 'tokens');
  assert.deepEqual(tokens.map(({ label, lastUsedAt }: Json) => [label, lastUsedAt >= startedAt]).sort(), [
    ['first', true],
    ['other', true],
    ['unused', false],
  ]);
});
