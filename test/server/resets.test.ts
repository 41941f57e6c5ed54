import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BODY_MAX_BYTES } from '../../src/core/contract/limits.ts';
import { makeToken } from '../../src/core/tokens/token.ts';
import { LONG_BODIES_MAX_BYTES } from '../../src/server/long-bodies.ts';
import { chunked, type RawConnection, type RequestParts, requestBytes } from '../harness/raw-connection.ts';
import { scrape } from '../harness/scrape.ts';
import { until } from '../harness/until.ts';
import { ConnectionTarget, plantJson } from './connection-target.ts';

/** Connections at a time, far below the limit of open files. */
const CONNECTIONS = 100;
/** Of long requests, these many cuts are enough. */
const CUTS_MAX = 400;

const target = await ConnectionTarget.start();
const body = plantJson(target.nextId());
const long = body.padEnd(60_000);

/** Requests of each kind that has states of its own. */
const KINDS: Record<string, RequestParts> = {
  'a plain create': { body },
  'a create in chunks': chunked(body),
  'a create in small chunks': {
    headers: { 'Content-Length': null, 'Transfer-Encoding': 'chunked' },
    body: `${Array.from(body, byte => `1;a=b\r\n${byte}\r\n`).join('')}0\r\nTrailer: a\r\n\r\n`,
  },
  'a long body': { body: long },
  'a long body in chunks': chunked(long),
  'an expected body': { body, headers: { Expect: '100-continue' } },
  'an expected long body': { body: long, headers: { Expect: '100-continue' } },
  'the last request': { body, headers: { Connection: 'close' } },
  'a request of HTTP/1.0': { body, version: '1.0' },
  'a request with an Origin': { body, headers: { Origin: 'https://plants.example' } },
  'an unknown token': { body, headers: { Authorization: `Bearer ${makeToken()}` } },
  'no credential': { body, headers: { Authorization: null } },
  'an unknown path with a body': { body: long, target: '/nowhere' },
  'a page': { method: 'GET', target: '/docs', body: '' },
  'an invalid request': { body, headers: { Host: 'a b' } },
  'an invalid chunk': { ...chunked(body), body: `5\r\n${body}` },
};

for (const [what, parts] of Object.entries(KINDS))
  test(`no connection stays open after resets at every byte of ${what}`, async () => {
    const bytes = Buffer.concat([requestBytes(target.service.token, parts), Buffer.from('POST /plants')]);
    const cuts = Array.from({ length: Math.min(bytes.length, CUTS_MAX) }, (_, index) =>
      Math.ceil(((index + 1) * bytes.length) / Math.min(bytes.length, CUTS_MAX)),
    ).values();
    const lane = async (): Promise<void> => {
      for (const cut of cuts) {
        const connection: RawConnection = await target.open();
        connection.write(bytes.subarray(0, cut));
        // Half of them are reset before the service has read anything.
        if (cut % 2 === 0) await new Promise(resolve => setImmediate(resolve));
        connection.socket.resetAndDestroy();
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, lane));
    await until('all are closed', async () => {
      const { values } = await scrape(target.service.opsUrl);
      return values.get('plant_store_connections') === 0;
    });
    assert.deepEqual(target.service.logged, []);
  });

test('after these resets, no memory for long bodies is reserved', async () => {
  using opened = new DisposableStack();
  const headers = { Expect: '100-continue', 'Content-Length': String(BODY_MAX_BYTES) };
  for (let reserved = 0; reserved < LONG_BODIES_MAX_BYTES; reserved += BODY_MAX_BYTES) {
    const connection = opened.use(await target.open());
    connection.write(requestBytes(target.service.token, { headers, body: '' }));
    assert.equal((await connection.response()).status, 100);
  }
});
