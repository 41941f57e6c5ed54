import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashToken, makeToken } from '../../src/auth/token.ts';
import { plantJson } from '../../src/contract/plant.ts';
import { fastPathHeadersOf } from '../../src/http/fast-path-headers.ts';
import { FAST_PATH_HEADERS_BYTES_MAX } from '../../src/http/limits.ts';
import { drawSendings, type Sending, send } from '../harness/arbitrary-requests.ts';
import { openCommandStore } from '../harness/open-store.ts';
import { type Ending, RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { assertErrorResponse } from '../harness/response-assertions.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { SEED } from '../harness/seeded-random.ts';
import { isLeftToNode, serverSideOf } from '../harness/server-side.ts';
import { storedRevisions } from '../harness/stored-revisions.ts';
import { until } from '../harness/until.ts';

/*
 * What a client sees and what is stored must not depend on the path that serves a connection. So
 * two services get the same bytes. One gets them as they are, perhaps in several chunks. The other
 * gets them after a request that moves the connection to Node's HTTP server.
 */

const CASES = 400;
const LANES = 32;
const TOKEN = makeToken();

const PLAIN_LINES = [
  'POST /plants HTTP/1.1',
  'Host: plants.example',
  `Authorization: Bearer ${TOKEN}`,
  'Content-Type: application/json',
  'Content-Length: 29',
];

/** The plain header section with other values of a field. */
function withValues(name: string, ...values: string[]): string[] {
  return values.map(value =>
    PLAIN_LINES.map(line => (line.startsWith(`${name}: `) ? `${name}: ${value}` : line)).join('\r\n'),
  );
}

/** The plain header section with one more line at its end. */
function withLines(...lines: string[]): string[] {
  return lines.map(line => [...PLAIN_LINES, line].join('\r\n'));
}

function ofLength(bytes: number): string {
  const [padded] = withLines('X-Padding: a');
  return padded!.padEnd(bytes, 'a');
}

/** Header sections that clients send, and that the fast path accepts. */
const FAST_PATH = [
  [PLAIN_LINES[0], ...PLAIN_LINES.slice(1).reverse()].join('\r\n'),
  PLAIN_LINES.join('\r\n').replace(/^[\w-]+:/gm, name => name.toLowerCase()),
  PLAIN_LINES.join('\r\n').replace(/^[\w-]+:/gm, name => name.toUpperCase()),
  ...withValues('Host', 'plants.example:65535', '127.0.0.1:8080'),
  ...withValues('Content-Type', 'application/json; charset=utf-8', 'APPLICATION/JSON;charset="UTF-8"'),
  ...withLines('User-Agent: curl/8.5.0\r\nAccept: */*\r\nCookie: a=b; c="d"', 'Connection: Keep-Alive'),
  ofLength(FAST_PATH_HEADERS_BYTES_MAX),
];

/** Header sections that a lax parser could accept there. More are in `request-cases.ts`. */
const ODD = [
  ofLength(FAST_PATH_HEADERS_BYTES_MAX + 1),
  ...['\r\nPOST /plants HTTP/1.1', 'POST /plants HTTP/1.1 ', 'POST /plants http/1.1'].map(line =>
    [line, ...PLAIN_LINES.slice(1)].join('\r\n'),
  ),
  ...withLines(
    ...['-Note: a', 'X_Note: a', 'X-N\xf6te: a', 'X-Note:a', 'X-Note:  a', 'X-Note:\ta', 'X-Note: a '],
    ...['X-Note: a\t', 'X-Note: a\tb', 'X-Note:', 'X-Note: ', 'X-Note: \xf6', 'X-Note: a\x7fb'],
    ...['X-Note: a\nX-More: b', 'X-Note: a\r\nx-note: b', 'Content-Length: 29', 'authorization: Bearer a'],
    ...['Expect: 100-continue', 'EXPECT: flowers', 'transfer-encoding: identity', 'Trailer: Expires'],
    ...['Connection: keep-alive, close', 'Connection: keep-alive\r\nConnection: keep-alive', 'TE: trailers'],
    ...['Keep-Alive: timeout=5', 'Proxy-Connection: keep-alive', 'Upgrade: h2c', 'Connection: upgrade'],
  ),
  ...withValues('Host', 'a:', 'a:123456', 'a,b', ':80'),
  ...withValues('Authorization', `Bearer ${TOKEN},`, `Bearer ${TOKEN} ${TOKEN}`),
  ...withValues('Content-Length', '029', '1e1', '29.0', '29;', '0', '10000000'),
];

/** A case for each header section, each with its own plant. */
function sendingsOf(sections: string[]): Sending[] {
  return sections.map((headers, index) => ({
    bytes: Buffer.from(`${headers}\r\n\r\n{"id":${10 ** 7 + index},"name":"ABCD"}`, 'latin1'),
    cuts: [],
  }));
}

/** Ends every connection that still parses requests: by its own response, or as junk. */
const LAST_REQUEST = Buffer.from('GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
/** If that request was read as part of a body, the client closes its side after this silence. */
const QUIET_MS = 50;
/** The plant that both services have from the start. */
const KNOWN_BODY = '{"id":1,"name":"A"}';

/** What a client sees: all responses without their dates, and how the connection ended. */
interface Seen {
  text: string;
  ending: Ending;
}

/** What a client sees of one case from here on. */
async function seenOn(connection: RawConnection, service: RunningService): Promise<Seen> {
  let finishing: Promise<void> | undefined;
  connection.socket.setTimeout(QUIET_MS, () => {
    finishing ??= finishBehindResponses(connection, service);
  });
  const ending = await connection.ended;
  await finishing;
  const text = connection.unread.replace(/^Date: .*\r\n/gm, '');
  if (ending === 'closed') await assertSoundResponses(connection);
  return { text, ending };
}

/** Whatever a client sends, it gets a plant or an error of the interface, and the service is up. */
async function assertSoundResponses(connection: RawConnection): Promise<void> {
  while (connection.unread !== '') {
    const response = await connection.response();
    // 100 (Continue) is not a final response.
    if (response.status === 100 || response.status === 200) continue;
    assert.ok(response.status < 500, `response ${response.status} ${response.body}`);
    assertErrorResponse(response, JSON.parse(response.body).error);
  }
}

/** Closes the client's side when its bytes are read and a later plant has its response. */
async function finishBehindResponses(connection: RawConnection, { address }: RunningService): Promise<void> {
  await until('the service reads what was sent', () => {
    const serverSide = serverSideOf(connection);
    return serverSide === undefined || serverSide.bytesRead >= connection.socket.bytesWritten;
  });
  using other = await RawConnection.open(address.port);
  // On Node's HTTP server, after everything that waits there.
  other.write(requestBytes(TOKEN, { target: '/plants?', body: KNOWN_BODY }));
  await other.response();
  connection.finish();
}

/** Sends a case as it is: in one write, or in chunks that arrive one by one. */
async function sendAsItIs(service: RunningService, sending: Sending): Promise<Seen> {
  using connection = await RawConnection.open(service.address.port);
  await send(connection, sending, LAST_REQUEST);
  return await seenOn(connection, service);
}

/** Sends a case in one write, after a request that moves the connection to Node's HTTP server. */
async function sendToNode(service: RunningService, { bytes }: Sending): Promise<Seen> {
  using connection = await RawConnection.open(service.address.port);
  connection.write('GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n');
  assert.equal((await connection.response()).status, 404);
  assert.ok(isLeftToNode(connection));
  connection.write(Buffer.concat([bytes, LAST_REQUEST]));
  return await seenOn(connection, service);
}

/** A service that has cached the token of all cases. */
async function startWithToken(): Promise<RunningService> {
  const service = await startTestService();
  const store = await openCommandStore(service.database);
  await store.createToken({ hash: hashToken(TOKEN), label: 'cases', createdAt: 1, expiresAt: null });
  await store.close();
  using connection = await RawConnection.open(service.address.port);
  connection.write(requestBytes(TOKEN, { body: KNOWN_BODY }));
  assert.equal((await connection.response()).status, 200);
  return service;
}

/** The revisions that responses confirm: id, revision and the plant without its id. */
function confirmedBy(responses: string): string[] {
  const stored =
    /^Plant-Id: (\S+)\r\nPlant-Revision: (\S+)\r\nPlant-Outcome: (?:created|revised)\r\n(?:[^\r\n]+\r\n)*\r\n(\{[^\n]*\})/gm;
  return [...responses.matchAll(stored)].map(([, ...parts]) => parts.join(' '));
}

/**
 * Whether one of the two rejected a request before all of it had arrived, which closes the
 * connection. How much has arrived depends on timing, on both paths.
 */
function rejectedEarly(one: Seen, other: Seen): boolean {
  const responsesOf = ({ text }: Seen): string[] => text.split(/(?=HTTP\/1\.1 \d{3} )/);
  const [these, those] = [responsesOf(one), responsesOf(other)];
  const first = these.findIndex((response, index) => response !== those[index]);
  return [these, those].some(
    responses =>
      first === responses.length - 1 &&
      /^HTTP\/1\.1 4[\s\S]*\r\nConnection: close\r\n/.test(responses[first]!),
  );
}

test('the fast path accepts what clients send', async () => {
  await using service = await startWithToken();
  for (const { bytes } of sendingsOf(FAST_PATH)) {
    using connection = await RawConnection.open(service.address.port);
    connection.write(bytes);
    assert.equal((await connection.response()).status, 200, bytes.toString());
    assert.ok(!isLeftToNode(connection), bytes.toString());
  }
});

test(`the same bytes have the same responses and stored plants on both paths, seed ${SEED}`, async () => {
  await using asTheyAre = await startWithToken();
  await using throughNode = await startWithToken();
  const cases = [...sendingsOf([...FAST_PATH, ...ODD]), ...drawSendings(TOKEN, SEED, CASES)];
  const confirmed = [['1 1 {"name":"A"}'], ['1 1 {"name":"A"}']];
  let early = 0;
  const statuses = new Set<string>();
  let fastPath = 0;
  const left = cases.values();
  const lane = async (): Promise<void> => {
    for (const each of left) {
      const [one, other] = await Promise.all([sendAsItIs(asTheyAre, each), sendToNode(throughNode, each)]);
      const bytes = each.bytes.toString('latin1');
      if (rejectedEarly(one, other)) early++;
      else assert.deepEqual(one, other, `seed ${SEED}, cut at ${each.cuts}: ${JSON.stringify(bytes)}`);
      // After a reset, the client could not read the responses that it has not read yet.
      for (const [index, { text, ending }] of [one, other].entries()) {
        assert.equal(ending, 'closed', `seed ${SEED}: ${JSON.stringify(bytes)}`);
        confirmed[index]!.push(...confirmedBy(text));
      }
      if (fastPathHeadersOf(bytes.split('\r\n\r\n', 1)[0]!) !== undefined) fastPath++;
      for (const [, status] of one.text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) statuses.add(status!);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));

  for (const [index, service] of [asTheyAre, throughNode].entries()) {
    const stored = (await storedRevisions(service.database)).map(
      ({ plant, revision }) => `${plant.id} ${revision} ${plantJson(plant)}`,
    );
    assert.deepEqual(stored.sort(), confirmed[index]!.sort());
  }
  assert.deepEqual([asTheyAre.logged, throughNode.logged], [[], []]);
  // These check that the drawn requests cover what this test is for.
  assert.ok(early < CASES / 100, `${early} of ${CASES} cases are inconclusive`);
  assert.ok(fastPath > CASES / 3, `${fastPath} of ${CASES} cases begin with fast path headers`);
  for (const status of ['200', '400', '401', '405', '413', '415']) assert.ok(statuses.has(status), status);
});
