import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { hashToken, makeToken } from '../src/auth/token.ts';
import { OrdinaryHeads } from '../src/http/ordinary-head.ts';
import { openReader, openTokenStore } from '../src/store/open-store.ts';
import { RawConnection, requestBytes } from './raw-connection.ts';
import { type RunningService, startTestService } from './running-service.ts';
import { SEED } from './seeded-random.ts';
import { isLeftToNode, serverSideOf } from './server-side.ts';
import { until } from './until.ts';

/*
 * What a client sees and what is stored must not depend on the way that a connection is served. So the same bytes go
 * to two services: to one as they are, perhaps in pieces, to the other behind a request that takes the connection to
 * Node's HTTP server.
 */

const CASES = 2_000;
const LANES = 32;
const TOKEN = makeToken();

/** What one client sends, and where it pauses; positions are fractions of the length. */
interface Case {
  bytes: Buffer;
  cuts: number[];
}

const fraction = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });

// Of so many digits that one less or one other is the id of no other case; small ones would be drawn again and again.
const id = fc.noBias(fc.bigInt({ min: 10n ** 17n, max: 10n ** 18n - 1n })).map(String);
const name = fc.oneof(
  { weight: 20, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.nat(70_000).map(length => 'x'.repeat(length)) },
);
const plantBody = fc
  .tuple(id, name, fc.option(name, { freq: 2 }))
  .map(([digits, value, tag]) =>
    JSON.stringify({ name: value, tag: tag ?? undefined }).replace('{', `{"id":${digits},`),
  );
const oddBody = fc.constantFrom(
  '',
  '{}',
  '[]',
  '{"id":1',
  '{"id":9223372036854775808,"name":"A"}',
  '{"id":1.5,"name":"A"}',
  '{"id":null,"name":7,"tag":null}',
  '\ufeff{"id":1,"name":"A"}',
  String.raw`{"id":1,"name":"\ud800"}`,
);

const oddLine = fc.constantFrom(
  'Transfer-Encoding: chunked',
  'Connection: close',
  'Connection: keep-alive',
  'Connection: upgrade',
  'Upgrade: h2c',
  'Expect: 100-continue',
  'Expect: flowers',
  'Content-Encoding: gzip',
  'Content-Type: text/plain',
  'Content-Type: application/json; charset=utf-16',
  'Content-Length: 5',
  'Authorization: Bearer a',
  'Host: b',
  'Host: a b',
  'User-Agent: a',
  'X-Note:  a\t',
  'X-Note:',
  'X-Note: a\r\n b',
  'X-Note : a',
  'X-Note: \xf6',
  `X-Padding: ${'a'.repeat(2_500)}`,
  '',
);
const oddLength = fc.constantFrom(
  (length: number) => `+${length}`,
  (length: number) => `0${length}`,
  (length: number) => `${length}, ${length}`,
  (length: number) => `${length} `,
  (length: number) => String(length + 1),
  (length: number) => String(Math.max(length - 1, 0)),
  () => '',
  () => '1048577',
  () => '99999999999999999999',
);
const oddField = fc.constantFrom(
  'Authorization: Bearer a',
  'Authorization: Basic YTpi',
  'Authorization:',
  `Authorization: bearer ${TOKEN}`,
  'Content-Type: text/plain',
  'Content-Type: Application/JSON;charset="utf-8"',
  'Host: a:80',
  'Host:',
);
const oddRequestLine = fc.constantFrom(
  'POST /plants?a=b HTTP/1.1',
  'POST http://a/plants HTTP/1.1',
  'POST /plants HTTP/1.0',
  'POST /plants HTTP/2.0',
  'post /plants HTTP/1.1',
  'GET /plants HTTP/1.1',
  'GET /openapi.json HTTP/1.1',
  'POST /plant HTTP/1.1',
  'POST  /plants HTTP/1.1',
  '\r\nPOST /plants HTTP/1.1',
);

/** One change to the lines of a head. */
const headChange: fc.Arbitrary<(lines: string[], bodyBytes: number) => string[]> = fc.oneof(
  fc.tuple(fraction, oddLine).map(([at, line]) => (lines: string[]) => {
    const position = 1 + Math.floor(at * lines.length);
    return [...lines.slice(0, position), line, ...lines.slice(position)];
  }),
  fraction.map(
    at => (lines: string[]) => lines.filter((_, index) => index !== Math.floor(at * lines.length)),
  ),
  fraction.map(at => (lines: string[]) => [...lines, lines[Math.floor(at * lines.length)]!]),
  fc.tuple(fraction, fraction).map(([one, other]) => (lines: string[]) => {
    const swapped = [...lines];
    const [first, second] = [Math.floor(one * lines.length), Math.floor(other * lines.length)];
    [swapped[first], swapped[second]] = [lines[second]!, lines[first]!];
    return swapped;
  }),
  fraction.map(
    at => (lines: string[]) =>
      lines.map((line, index) => (index === 1 + Math.floor(at * 4) ? line.toLowerCase() : line)),
  ),
  oddField.map(line => (lines: string[]) => {
    const [name] = line.split(':', 1);
    return lines.map(each => (each.split(':', 1)[0] === name ? line : each));
  }),
  oddRequestLine.map(line => (lines: string[]) => [line, ...lines.slice(1)]),
  oddLength.map(
    length => (lines: string[], bodyBytes: number) =>
      lines.map(line => (line.startsWith('Content-Length') ? `Content-Length: ${length(bodyBytes)}` : line)),
  ),
);

const request = fc
  .tuple(
    fc.oneof({ weight: 9, arbitrary: plantBody }, { weight: 1, arbitrary: oddBody }),
    onceInThree(fc.array(headChange, { minLength: 1, maxLength: 2 })),
  )
  .map(([body, changes]) => {
    const bytes = requestBytes(TOKEN, { body });
    const headBytes = bytes.indexOf('\r\n\r\n');
    const lines = changes.reduce(
      (changed, change) => change(changed, Buffer.byteLength(body)),
      bytes.toString('latin1', 0, headBytes).split('\r\n'),
    );
    return Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), bytes.subarray(headBytes)]);
  });

/** One change to the bytes of all requests of a case. */
const byteChange = fc
  .record({
    kind: fc.constantFrom('delete', 'insert', 'repeat', 'swap', 'cut'),
    at: fraction,
    length: fc.nat(40),
    byte: fc.oneof(fc.nat(255), fc.constantFrom(...Buffer.from('\r\n \t:,0{}"'))),
  })
  .map(({ kind, at, length, byte }) => (bytes: Buffer) => {
    const first = Math.floor(at * bytes.length);
    const end = Math.min(first + length, bytes.length);
    const [before, part, behind] = [
      bytes.subarray(0, first),
      bytes.subarray(first, end),
      bytes.subarray(end),
    ];
    if (kind === 'delete') return Buffer.concat([before, bytes.subarray(first + 1)]);
    if (kind === 'insert') return Buffer.concat([before, Buffer.of(byte), bytes.subarray(first)]);
    if (kind === 'repeat') return Buffer.concat([before, part, part, behind]);
    if (kind === 'swap') return Buffer.concat([before, Buffer.from(part).reverse(), behind]);
    return before;
  });

/** No elements in two of three cases. */
function onceInThree<T>(elements: fc.Arbitrary<T[]>): fc.Arbitrary<T[]> {
  return fc.oneof({ weight: 2, arbitrary: fc.constant<T[]>([]) }, { weight: 1, arbitrary: elements });
}

const arbitraryCase: fc.Arbitrary<Case> = fc
  .tuple(
    fc.array(request, { minLength: 1, maxLength: 5 }),
    onceInThree(fc.array(byteChange, { minLength: 1, maxLength: 2 })),
    onceInThree(fc.array(fraction, { minLength: 1, maxLength: 3 })),
  )
  .map(([requests, changes, cuts]) => ({
    bytes: changes.reduce<Buffer>((bytes, change) => change(bytes), Buffer.concat(requests)),
    cuts,
  }));

/** Ends every connection on which requests can still be found: by its own answer, or as junk. */
const LAST_REQUEST = Buffer.from('GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
/** Where it was taken for a part of a body, the client closes its side at last, once nothing has come for so long. */
const QUIET_MS = 50;
/** Of the plant that both services have from the start. */
const KNOWN_BODY = '{"id":1,"name":"A"}';

/** What a client sees: all answers but their dates, and how the connection ended. */
interface Seen {
  text: string;
  /** Whether one on which the client still sends is closed or reset behind a refusal depends on the machine's speed. */
  ending: 'closed' | 'reset';
}

/** What a client sees of one case from here on. */
async function seenOn(connection: RawConnection, service: RunningService): Promise<Seen> {
  connection.socket.setTimeout(QUIET_MS, () => void finishBehindAnswers(connection, service));
  const ending = await connection.ended;
  return { text: connection.unread.replace(/^Date: .*\r\n/gm, ''), ending };
}

/** Closes the client's side when all that it sent was read, and a plant that came later is answered: so are all before. */
async function finishBehindAnswers(connection: RawConnection, { address }: RunningService): Promise<void> {
  await until('the service reads what was sent', () => {
    const serverSide = serverSideOf(connection);
    return serverSide === undefined || serverSide.bytesRead >= connection.socket.bytesWritten;
  });
  using other = await RawConnection.open(address.port);
  other.write(requestBytes(TOKEN, { body: KNOWN_BODY }));
  await other.answer();
  connection.finish();
}

/** Sends a case as it is: in one write, or in pieces that arrive apart. */
async function sendAsItIs(service: RunningService, { bytes, cuts }: Case): Promise<Seen> {
  using connection = await RawConnection.open(service.address.port);
  let sent = 0;
  for (const cut of cuts.map(at => Math.floor(at * bytes.length)).sort((one, other) => one - other)) {
    connection.write(bytes.subarray(sent, cut));
    sent = cut;
    await wait(2);
  }
  connection.write(Buffer.concat([bytes.subarray(sent), LAST_REQUEST]));
  return await seenOn(connection, service);
}

/** Sends a case in one write, to Node's HTTP server: the request before it is not ordinary. */
async function sendToNode(service: RunningService, { bytes }: Case): Promise<Seen> {
  using connection = await RawConnection.open(service.address.port);
  connection.write('GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n');
  assert.equal((await connection.answer()).status, 404);
  assert.ok(isLeftToNode(connection));
  connection.write(Buffer.concat([bytes, LAST_REQUEST]));
  return await seenOn(connection, service);
}

/** A service that knows the token of all cases. */
async function startKnowing(): Promise<RunningService> {
  const service = await startTestService();
  const store = await openTokenStore(service.database);
  await store.createToken({ hash: hashToken(TOKEN), label: 'cases', createdAt: 1, expiresAt: null });
  await store.close();
  using connection = await RawConnection.open(service.address.port);
  connection.write(requestBytes(TOKEN, { body: KNOWN_BODY }));
  assert.equal((await connection.answer()).status, 200);
  return service;
}

async function storedIn({ database }: RunningService): Promise<string[]> {
  const reader = await openReader(database);
  const rows = await Array.fromAsync(
    reader.revisions(),
    ({ plant, revision }) => `${plant.id}:${revision} ${JSON.stringify([plant.name, plant.tag])}`,
  );
  await reader.close();
  return rows.sort();
}

/** The revisions that answers say were stored by them: `id:revision`. */
function confirmedBy(answers: string): string[] {
  const stored = /^Plant-Id: (\S+)\r\nPlant-Revision: (\S+)\r\nPlant-Outcome: (?:created|revised)\r$/gm;
  return [...answers.matchAll(stored)].map(([, plantId, revision]) => `${plantId}:${revision}`);
}

test(`the same bytes are answered and stored alike whichever way they go, seed ${SEED}`, async () => {
  await using asTheyAre = await startKnowing();
  await using throughNode = await startKnowing();
  const cases = fc.sample(arbitraryCase, { seed: SEED, numRuns: CASES });
  const heads = new OrdinaryHeads();
  const confirmed = ['1:1'];
  const statuses = new Map<string, number>();
  let ordinary = 0;
  let resets = 0;
  const left = cases.values();
  const lane = async (): Promise<void> => {
    for (const each of left) {
      const [one, other] = await Promise.all([sendAsItIs(asTheyAre, each), sendToNode(throughNode, each)]);
      const bytes = each.bytes.toString('latin1');
      // A reset takes answers with it that the client has not read yet.
      if (one.ending === 'reset' || other.ending === 'reset') resets++;
      else assert.equal(one.text, other.text, `seed ${SEED}, cut at ${each.cuts}: ${JSON.stringify(bytes)}`);
      confirmed.push(...confirmedBy(one.text));
      if (heads.read(bytes.split('\r\n\r\n', 1)[0]!) !== undefined) ordinary++;
      for (const [, status] of one.text.matchAll(/HTTP\/1\.1 (\d{3}) /g))
        statuses.set(status!, (statuses.get(status!) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));

  const stored = await storedIn(asTheyAre);
  assert.deepEqual(stored, await storedIn(throughNode));
  const storedRows = stored.map(row => row.split(' ', 1)[0]!).sort();
  if (resets === 0) assert.deepEqual(storedRows, confirmed.sort());
  else
    assert.deepEqual(
      confirmed.filter(row => !storedRows.includes(row)),
      [],
    );
  assert.ok(resets < CASES / 20, `${resets} connections were reset`);
  assert.deepEqual([asTheyAre.logged, throughNode.logged], [[], []]);
  // Otherwise all that was said above would be of other requests than it should.
  assert.ok(ordinary > CASES / 3, `${ordinary} of ${CASES} cases begin with an ordinary head`);
  for (const status of ['200', '400', '401', '405', '413', '415'])
    assert.ok((statuses.get(status) ?? 0) > CASES / 500, `${status}: ${JSON.stringify([...statuses])}`);
});
