/** What `check` says about the servers of other authors, broken and right. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, test } from 'node:test';
import { plantsUrl } from '../../../src/client/transport.ts';
import { checkRules } from '../../../tools/check/check-run.ts';
import { drawIds } from '../../../tools/check/ids.ts';
import { RULES } from '../../../tools/check/rules.ts';
import { ERROR, type ForeignResponse, startForeignStore, TOKEN, type Ways } from './foreign-plant-store.ts';

async function faultsOf(ways: Ways, runs = 1): Promise<{ id: string; fault: string }[]> {
  await using store = await startForeignStore(ways);
  const url = plantsUrl(new URL(store.url + (ways.base ?? '')));
  const server = { plantsUrl: url, token: TOKEN, stop: new AbortController().signal };
  const faults: { id: string; fault: string }[] = [];
  for (let run = 0; run < runs; run++) {
    const results = await checkRules(RULES, server, drawIds(RULES));
    for (const result of results)
      if (result.verdict === 'does not hold')
        faults.push(...result.faults.map(fault => ({ id: result.rule.id, fault })));
  }
  return faults;
}

type Plant = Record<string, string>;

const on = (status: number, change: (usual: ForeignResponse) => Partial<ForeignResponse>): Ways => ({
  respond: usual => (usual.status === status ? { ...usual, ...change(usual) } : usual),
});
const plant = (change: (plant: Plant, isAgain: boolean) => ForeignResponse['body']): Ways =>
  on(200, ({ body, isAgain }) => ({ body: change(body as Plant, isAgain) }));
const names = (change: (text: string) => unknown): Ways =>
  plant(({ name = '', ...rest }) => ({ ...rest, name: change(name) }));
const tags = (change: (text: string) => unknown): Ways =>
  plant(({ tag, name }) => ({ name, ...(tag !== undefined && { tag: change(tag) }) }));
const error = (change: object): Ways => on(400, () => ({ body: { ...ERROR, ...change } }));
const written = (status: number, change: (json: string) => string): Ways =>
  on(status, ({ body }) => ({ body: Buffer.from(change(JSON.stringify(body))) }));
const typed = (status: number, type: string) => on(status, () => ({ headers: { 'Content-TYPE': type } }));
const rejects = (condition: (usual: ForeignResponse, name: string) => boolean, status = 400): Ways =>
  on(200, usual => (condition(usual, (usual.body as { name: string }).name) ? { status, body: ERROR } : {}));
const rejectsIds = (condition: (id: bigint) => boolean, status = 400): Ways =>
  rejects(({ plantId }) => condition(plantId!), status);
const rejectsSent = (name: string, value: RegExp, status = 400): Ways =>
  rejects(({ sent }) => value.test(String(sent[name])), status);
const reads = (what: string | RegExp, by: string): Ways => ({ read: text => text.replace(what, by) });
const readsIds = (change: (id: bigint) => bigint): Ways => ({
  read: text => text.replace(/(?<="id":)-?[0-9]+(?=[,}])/, id => String(change(BigInt(id)))),
});
const accepts = (authorization: RegExp, type = /json/): Ways => ({
  accepts: ({ authorization: sent = 'none', 'content-type': sentType = '' }) =>
    (authorization.test(sent) || sent.toLowerCase() === `bearer ${TOKEN}`) && type.test(sentType),
});
const replace = (what: RegExp, by: string) => (text: string) => text.replace(what, by);

const OLD_TAG = { tag: 'B' };
const ISO_8859_1 = Buffer.from('{"error":1,"message":"\u00ea"}', 'latin1');

/** Servers that are broken in one way, by all faults found; each with a rule that it breaks. */
const BROKEN: Record<string, [rule: string, what: string, ways: Ways][]> = {
  'status 200 instead of one from 400 to 499': [
    ['credential.missing', 'accepts a request without Authorization', accepts(/^none$/)],
    ['media-type.other', 'accepts text/plain', accepts(/^-/, /json|text/)],
    ['reject.empty', 'accepts an empty body', reads(/^$/, '{"id":1,"name":"A"}')],
    ['reject.id-string', 'reads a string as an id', reads(/"id":"([0-9]+)"/, '"id":$1')],
    ['reject.id-above-int64', 'wraps ids at 64 bits', readsIds(id => BigInt.asIntN(64, id))],
    ['reject.name-number', 'reads a number as a name', reads('"name":1', '"name":"1"')],
  ],
  'status 500 instead of one from 400 to 499': [['reject.empty', 'fails', on(400, () => ({ status: 500 }))]],
  'status 201 instead of 200': [['create.status', 'sends 201', on(200, () => ({ status: 201 }))]],
  'status 400 instead of 200': [
    ['create.id.zero', 'rejects the id 0', rejectsIds(id => id === 0n)],
    ['create.id.negative', 'rejects negative ids', rejectsIds(id => id < 0n)],
    ['create.id.above-double', 'rejects unsafe ids', rejectsIds(id => id > 2n ** 53n)],
    ['create.id.int64-min', 'rejects the smallest int64', rejectsIds(id => id === -(2n ** 63n))],
    ['create.text.empty', 'rejects an empty name', rejects((_, name) => name === '')],
    ['create.tag.absent', 'requires a tag', rejects(({ body }) => !('tag' in body))],
    ['create.json.member-order', 'requires the id first', reads(/^{"tag"/, '')],
    ['create.json.white-space', 'reads no white space', reads(/^ /, '{')],
    ['create.json.further-member', 'knows each member', reads(/^.*"height".*$/, '')],
    ['credential.scheme-case', 'compares the scheme with Bearer', rejectsSent('authorization', /^bearer/)],
    ['http.chunked.read', 'reads no chunks', rejectsSent('transfer-encoding', /chunked/)],
    ['http.second-request', 'fails after a request', rejects(({ isOnUsedConnection: used }) => used)],
  ],
  'status 400 instead of 200; status 200 instead of one from 400 to 499': [
    ['create.id.int64-max', 'rounds ids to doubles', readsIds(id => BigInt(Number(id)))],
  ],
  'status 411 instead of 200': [
    ['http.chunked.accepted', 'needs a length', rejectsSent('transfer-encoding', /chunked/, 411)],
  ],
  'status 415 instead of 200': [
    ['media-type.charset', 'accepts no charset', rejectsSent('content-type', /charset/, 415)],
  ],
  'the server closed the connection without Connection: close': [
    ['http.second-request', 'closes each connection', { send: sendAndClose }],
  ],
  'status 500 instead of 200': [
    ['create.id.above-int32', 'stores 32 bits', rejectsIds(id => id !== BigInt.asIntN(32, id), 500)],
    ['create.id.below-int32', 'fails below int32', rejectsIds(id => id < -(2n ** 31n), 500)],
    ['create.text.length-10000', 'fails at 5 kB', rejects((_, name) => name.length > 5000, 500)],
  ],
  'name is not as sent': [
    ['create.text.space', 'trims names', names(text => text.trim())],
    ['create.text.non-ascii', 'stores ISO 8859-1', names(replace(/[^\0-\u00ff]/g, '?'))],
    ['create.text.not-normalized', 'normalizes names to NFC', names(text => text.normalize('NFC'))],
    ['create.text.length-1000', 'cuts names at 255', names(text => text.slice(0, 255))],
  ],
  'tag is not as sent': [
    ['create.text.empty', 'writes empty tags as null', tags(text => text || null)],
    ['create.tag.absent', 'adds null', plant(usual => ({ tag: null, ...usual }))],
    [
      'create.stored-id.same',
      'loses tags',
      plant(({ name, ...tag }, again) => ({ name, ...(!again && tag) })),
    ],
    ['create.stored-id.other', 'keeps tags', plant((usual, again) => ({ ...(again && OLD_TAG), ...usual }))],
  ],
  'name is not as sent; tag is not as sent': [['create.status', 'wraps', plant(usual => ({ data: usual }))]],
  'the response has an id, which a Plant has not': [
    ['create.status', 'writes an id', plant(usual => ({ id: 1, ...usual }))],
  ],
  'a body that is not a JSON object': [['create.status', 'writes a list', plant(usual => [usual])]],
  'a body that is not JSON in UTF-8': [
    ['create.status', 'begins a Plant with a byte order mark', written(200, json => `\ufeff${json}`)],
    ['reject.empty', 'writes ISO 8859-1', on(400, () => ({ body: ISO_8859_1 }))],
    ['reject.empty', 'writes an Error as text', written(400, () => 'No.')],
  ],
  'a body with a repeated member': [
    ['create.status', 'writes name twice', written(200, replace(/{/, '{"name":"A",'))],
  ],
  'an Error without an int32 as error': [
    ['reject.empty', 'writes an error as text', error({ error: 'Bad Request' })],
    ['credential.missing', 'writes an error number beyond int32', error({ error: 2 ** 31 })],
  ],
  'an Error without a string as message': [
    ['reject.array', 'writes an Error without a message', error({ message: undefined })],
  ],
  'Content-Type text/html instead of application/json': [
    ['create.status', 'sends a Plant as text/html', typed(200, 'text/html')],
    ['reject.empty', 'sends an Error as text/html', typed(400, 'text/html')],
  ],
};

suite('check finds the fault of a server that', { concurrency: 8 }, () => {
  for (const [expected, servers] of Object.entries(BROKEN))
    for (const [rule, what, ways] of servers)
      test(what, async () => {
        const found = await faultsOf(ways);
        assert.deepEqual([...new Set(found.map(({ fault }) => fault))], expected.split('; '));
        assert.ok(found.map(({ id }) => id).includes(rule), JSON.stringify(found));
      });
});

/** The client asked for an open connection, and Node's header says that it stays open. */
function sendAndClose(response: ServerResponse, body: Buffer): void {
  response.end(body, () => response.socket?.end());
}

/** A response without a length: the end of the connection ends it. */
function sendWithoutLength(version: string) {
  return ({ socket, statusCode }: ServerResponse, body: Buffer): void => {
    const header = `HTTP/${version} ${statusCode} Whatever\r\ncontent-type: application/json\r\n\r\n`;
    socket!.end(Buffer.concat([Buffer.from(header), body]));
  };
}

const sendHttp10 = sendWithoutLength('1.0');

const RIGHT: Record<string, Ways> = {
  'follows the interface word by word': {},
  'has a base path': { base: '/garden/v1' },
  'accepts each id once': rejects(({ isAgain }) => isAgain),
  'accepts each id once, with 409': rejects(({ isAgain }) => isAgain, 409),
  'rejects with 422 and HTML': on(400, () => ({ status: 422, body: Buffer.from('<p>No.') })),
  'writes further members': plant(usual => ({ ...usual, createdAt: '2026-01-01', links: { name: {} } })),
  'writes further members of an Error': error({ details: [ERROR, ERROR] }),
  'names the charset': typed(200, 'Application/JSON; charset=utf-8'),
  'sends a response in chunks': { send: (response, body) => response.write(body, () => response.end()) },
  'ends each response by closing the connection, as HTTP/1.0': { send: sendHttp10 },
  // RFC 9112 section 9.3: only messages with a length can leave a connection open.
  'ends each response by closing the connection': { send: sendWithoutLength('1.1') },
  'has HTTP/1.0 and reads no chunks': {
    ...rejectsSent('transfer-encoding', /chunked/),
    send: sendHttp10,
  },
  'closes each connection after it has said so': on(200, ({ headers }) => ({
    headers: { ...headers, Connection: 'close' },
  })),
  'sends 429 now and then': { putOff: [429, '1'] },
  'sends 503 with a date now and then': { putOff: [503, 'Sun, 06 Nov 1994 08:49:37 GMT'] },
};

// In the second run, the ids that rules are about are stored already.
suite('check blames nothing, in two runs, of a server that', { concurrency: 10 }, () => {
  for (const [what, ways] of Object.entries(RIGHT))
    test(what, async () => assert.deepEqual(await faultsOf(ways, 2), []));
});
