import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { INTERIM_ANSWERS_MAX } from '../src/client/limits.ts';
import { NotHttp, type ReceivedAnswer, readHttpAnswer } from '../src/client/node/http-answer.ts';

const BYTES_MAX = 64 * 1024;

function read(text: string, start = 0, hasEnded = false): ReceivedAnswer | undefined {
  return readHttpAnswer(text, start, hasEnded, BYTES_MAX);
}

suite('reading an HTTP answer', () => {
  const WHOLE: [string, string, Partial<ReceivedAnswer>][] = [
    ['a length', 'HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\nabc', { status: 200, body: 'abc' }],
    ['no reason', 'HTTP/1.1 503\r\ncontent-length:0\r\n\r\n', { status: 503, body: '' }],
    [
      'chunks',
      'HTTP/1.1 400 Bad\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n',
      { status: 400, body: 'abc0123456789' },
    ],
    [
      'chunks and a trailer',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nB: c\r\n\r\n',
      { body: 'a' },
    ],
    [
      'an interim answer before it',
      'HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx',
      { status: 200, body: 'x', isLast: false },
    ],
    ['no body', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204, body: '', isLast: false }],
    [
      'a close among other words',
      'HTTP/1.1 200 OK\r\nConnection: x\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n',
      { isLast: true },
    ],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', { isLast: true }],
  ];
  for (const [what, text, expected] of WHOLE) {
    test(`${what}: read at its last byte, wherever it was cut, and no further`, () => {
      for (let length = 0; length < text.length; length++) {
        assert.equal(read(text.slice(0, length)), undefined, `at ${length}`);
      }
      const answer = read(`before${text}HTTP/1.1`, 6)!;
      assert.partialDeepStrictEqual(answer, { ...expected, end: 6 + text.length });
    });
  }

  test('of a body that goes on and on the beginning is read, and nothing behind it', () => {
    const start = head('Content-Length: 999999999');
    const text = `${start}${'x'.repeat(BYTES_MAX - start.length)}`;
    assert.equal(read(text), undefined);
    assert.partialDeepStrictEqual(read(`${text}x`)!, {
      ...{ status: 200, body: 'x'.repeat(BYTES_MAX + 1 - start.length), isLast: true, end: BYTES_MAX + 1 },
    });
  });

  test('a body is text in UTF-8', () => {
    const text = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n\xc3\xa9\xf0\x9f\x8c\xb1';
    assert.partialDeepStrictEqual(read(text)!, { body: 'é🌱', end: text.length });
  });

  test('a body without a length ends with the connection', () => {
    const text = 'HTTP/1.1 502 Bad Gateway\r\n\r\n<p>';
    assert.equal(read(text), undefined);
    assert.partialDeepStrictEqual(read(text, 0, true)!, { status: 502, body: '<p>', isLast: true });
  });

  test('names of headers are in lower case, and repeated ones are joined', () => {
    const text =
      'HTTP/1.1 200 OK\r\nPlant-Id: 1\r\nplant-id:\t2 \r\n__proto__: x\r\nContent-Length: 0\r\n\r\n';
    const { headers } = read(text)!;
    assert.deepEqual({ ...headers }, { 'plant-id': '1, 2', ['__proto__']: 'x', 'content-length': '0' });
  });

  const head = (fields: string): string => `HTTP/1.1 200 OK\r\n${fields}\r\n\r\n`;
  test('the blanks around a value are not part of it, those within are', () => {
    const { headers } = read(head('A: \t b \t c\t \r\nB: \t \r\nContent-Length: 0'))!;
    assert.deepEqual({ ...headers }, { a: 'b \t c', b: '', 'content-length': '0' });
  });

  test('a value with many blanks is read, or refused, in a moment', { timeout: 10_000 }, () => {
    const blanks = ' '.repeat(200_000);
    const startMs = performance.now();
    const { headers } = read(head(`X: a${blanks}b\r\nContent-Length: 0`))!;
    assert.throws(() => read(head(`X:${' '.repeat(3000)}\n`)), NotHttp);
    // Where each blank leads to another look at all others, minutes.
    assert.ok(performance.now() - startMs < 1000, `${performance.now() - startMs} ms`);
    assert.equal(headers.x, `a${blanks}b`);
  });

  const INTERIM = 'HTTP/1.1 100\r\n\r\n';

  test('a few interim answers are read past, and more are no answer', () => {
    const text = `${INTERIM.repeat(INTERIM_ANSWERS_MAX)}${head('Content-Length: 0')}`;
    assert.equal(read(text)!.status, 200);
    assert.throws(() => read(INTERIM + text), NotHttp);
  });

  const MALFORMED: [string, string][] = [
    ['another protocol', 'SSH-2.0\r\n\r\n'],
    ['HTTP/2', 'HTTP/2 200\r\n\r\n'],
    ['a change of protocol', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['two lengths', head('Content-Length: 1\r\nContent-Length: 1')],
    ['a length that is none', head('Content-Length: -1')],
    ['a length and chunks', head('Content-Length: 1\r\nTransfer-Encoding: chunked')],
    ['an unknown coding', head('Transfer-Encoding: gzip, chunked')],
    ['a folded line', head('A: b\r\n c: d')],
    ['a line without a colon', head('A b')],
    ['a bare line feed', head('A: b\nC: d')],
    ['a bare carriage return', head('A: b\rC: d')],
    ['a NUL in a value', head('A: b\0')],
    ['a size of a chunk that is none', `${head('Transfer-Encoding: chunked')}x\r\n`],
    ['a chunk that is longer than it says', `${head('Transfer-Encoding: chunked')}1\r\nabcd\r\n`],
    ['an endless head', `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(BYTES_MAX / 6)}`],
    ['a flood of interim answers', INTERIM.repeat(20_000)],
    ['interim answers without end', `HTTP/1.1 102 ${'x'.repeat(BYTES_MAX / 4)}\r\n\r\n`.repeat(4)],
  ];
  for (const [what, text] of MALFORMED) {
    test(`${what} is no answer`, () => {
      assert.throws(() => read(text), NotHttp);
    });
  }
});
