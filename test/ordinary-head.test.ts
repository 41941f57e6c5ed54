import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { hashToken, makeToken } from '../src/auth/token.ts';
import { ORDINARY_HEAD_BYTES_MAX, ORDINARY_HEADS_MAX } from '../src/contract/limits.ts';
import { OrdinaryHeads } from '../src/http/ordinary-head.ts';
import { SEED } from './harness/seeded-random.ts';

const TOKEN = makeToken();
const PLAIN_LINES = [
  'POST /plants HTTP/1.1',
  'Host: plants.example',
  `Authorization: Bearer ${TOKEN}`,
  'Content-Type: application/json',
  'Content-Length: 19',
];
const PLAIN = PLAIN_LINES.join('\r\n');

/** The plain head with another value of a field. */
function withValue(name: string, value: string): string {
  return PLAIN_LINES.map(line => (line.startsWith(`${name}: `) ? `${name}: ${value}` : line)).join('\r\n');
}

/** The plain head with one more line at its end. */
function withLine(line: string): string {
  return `${PLAIN}\r\n${line}`;
}

function without(name: string): string {
  return PLAIN_LINES.filter(line => !line.startsWith(`${name}: `)).join('\r\n');
}

/** The plain head with a field that makes it so many bytes long. */
function ofLength(bytes: number): string {
  const padded = withLine('X-Padding: a');
  return padded + 'a'.repeat(bytes - padded.length);
}

suite('a head is ordinary', () => {
  const taken: Record<string, string> = {
    'in its plainest form': PLAIN,
    'with its fields in another order': [PLAIN_LINES[0], ...PLAIN_LINES.slice(1).reverse()].join('\r\n'),
    'with names in small letters': PLAIN.replace(/^[\w-]+:/gm, name => name.toLowerCase()),
    'with names in capitals': PLAIN.replace(/^[\w-]+:/gm, name => name.toUpperCase()),
    'with a port': withValue('Host', 'plants.example:65535'),
    'with an address for its host': withValue('Host', '127.0.0.1:8080'),
    'with charset=utf-8': withValue('Content-Type', 'application/json; charset=utf-8'),
    'with charset="UTF-8" in quotes': withValue('Content-Type', 'APPLICATION/JSON;charset="UTF-8"'),
    'with fields that change nothing': withLine(
      'User-Agent: curl/8.5.0\r\nAccept: */*\r\nCookie: a=b; c="d"',
    ),
    'with Connection: keep-alive': withLine('Connection: keep-alive'),
    'with Connection: Keep-Alive': withLine('Connection: Keep-Alive'),
    'with the length 0': withValue('Content-Length', '0'),
    'as long as it may be': ofLength(ORDINARY_HEAD_BYTES_MAX),
  };
  for (const [what, head] of Object.entries(taken)) {
    test(what, () => {
      const bodyBytes = Number(/^content-length: (\d+)$/im.exec(head)?.[1]);
      assert.deepEqual(new OrdinaryHeads().read(head), { tokenHash: hashToken(TOKEN), bodyBytes });
    });
  }
});

suite('a head is not ordinary, and is left to the parser of HTTP', () => {
  const left: Record<string, string> = {
    empty: '',
    'that is its request line alone': PLAIN_LINES[0]!,
    'over its length': ofLength(ORDINARY_HEAD_BYTES_MAX + 1),
    'behind an empty line': `\r\n${PLAIN}`,
    'behind a space': ` ${PLAIN}`,
    'with an empty line in it': PLAIN.replace('\r\nHost', '\r\n\r\nHost'),
    'with a line end behind it': `${PLAIN}\r\n`,
  };
  const requestLines = {
    'a method in small letters': 'post /plants HTTP/1.1',
    'another method': 'PUT /plants HTTP/1.1',
    'the absolute form': 'POST http://plants.example/plants HTTP/1.1',
    'a query': 'POST /plants? HTTP/1.1',
    'a fragment': 'POST /plants#a HTTP/1.1',
    'percent-encoding': 'POST /%70lants HTTP/1.1',
    'another path': 'POST /plants/ HTTP/1.1',
    'another path in capitals': 'POST /Plants HTTP/1.1',
    'HTTP/1.0': 'POST /plants HTTP/1.0',
    'HTTP/2.0': 'POST /plants HTTP/2.0',
    'http in small letters': 'POST /plants http/1.1',
    'no version': 'POST /plants',
    'two spaces': 'POST  /plants HTTP/1.1',
    'a tab': 'POST\t/plants HTTP/1.1',
    'a space at its end': 'POST /plants HTTP/1.1 ',
  };
  for (const [what, line] of Object.entries(requestLines))
    left[`with ${what} in its request line`] = PLAIN.replace(PLAIN_LINES[0]!, line);

  const lines = {
    'a field on two lines': 'X-Note: a\r\n b',
    'a field on two lines, by a tab': 'X-Note: a\r\n\tb',
    'a space before a name': ' X-Note: a',
    'a space before a colon': 'X-Note : a',
    'a tab before a colon': 'X-Note\t: a',
    'no colon': 'X-Note',
    'no name': ': a',
    'a name that begins with a sign': '-Note: a',
    'an underline in a name': 'X_Note: a',
    'a name beyond ASCII': 'X-N\xf6te: a',
    'no space before a value': 'X-Note:a',
    'two spaces before a value': 'X-Note:  a',
    'a tab before a value': 'X-Note:\ta',
    'a space behind a value': 'X-Note: a ',
    'a tab behind a value': 'X-Note: a\t',
    'a tab in a value': 'X-Note: a\tb',
    'an empty value': 'X-Note:',
    'an empty value behind a space': 'X-Note: ',
    'a value beyond ASCII': 'X-Note: \xf6',
    'U+0000 in a value': 'X-Note: a\0b',
    'U+007F in a value': 'X-Note: a\x7fb',
    'a carriage return in a value': 'X-Note: a\rb',
    'a line feed in a value': 'X-Note: a\nb',
    'a field behind a line feed alone': 'X-Note: a\nX-More: b',
    'any field twice': 'X-Note: a\r\nX-Note: a',
    'any field twice, in other letters': 'X-Note: a\r\nx-note: b',
    'two Host fields': 'Host: plants.example',
    'two Authorization fields': `Authorization: Bearer ${TOKEN}`,
    'two Authorization fields, the other in small letters': 'authorization: Bearer a',
    'two Content-Type fields': 'Content-Type: application/json',
    'two Content-Length fields of one value': 'Content-Length: 19',
    'two Content-Length fields of two values': 'content-length: 5',
    'Transfer-Encoding: chunked': 'Transfer-Encoding: chunked',
    'transfer-encoding: identity': 'transfer-encoding: identity',
    'Expect: 100-continue': 'Expect: 100-continue',
    'another expectation': 'EXPECT: flowers',
    'Connection: close': 'Connection: close',
    'Connection: upgrade': 'Connection: upgrade',
    'Connection: keep-alive, close': 'Connection: keep-alive, close',
    'two Connection fields': 'Connection: keep-alive\r\nConnection: keep-alive',
    'Proxy-Connection': 'Proxy-Connection: keep-alive',
    'Keep-Alive': 'Keep-Alive: timeout=5',
    Upgrade: 'Upgrade: h2c',
    TE: 'TE: trailers',
    Trailer: 'Trailer: Expires',
    'Content-Encoding: gzip': 'Content-Encoding: gzip',
    'content-encoding: identity': 'content-encoding: identity',
  };
  for (const [what, line] of Object.entries(lines)) left[`with ${what}`] = withLine(line);

  const values: Record<string, string[]> = {
    Host: ['a b', 'user@a', '[::1]', 'a:b', 'a:', 'a:123456', 'http://a', 'a/b', 'a,b', 'a_b', 'a?b', ':80'],
    Authorization: [
      `bearer ${TOKEN}`,
      `Bearer  ${TOKEN}`,
      `Bearer\t${TOKEN}`,
      `Bearer ${TOKEN} ${TOKEN}`,
      `Bearer ${TOKEN},`,
      `Bearer ${TOKEN}=`,
      `Bearer ${TOKEN.slice(0, -1)}`,
      `Bearer ${TOKEN.slice(0, -1)}${TOKEN.endsWith('a') ? 'b' : 'a'}`,
      `Bearer ${TOKEN.replace('plant_', 'PLANT_')}`,
      'Bearer',
      'Bearer abc',
      'Basic YTpi',
      TOKEN,
    ],
    'Content-Type': [
      'text/plain',
      'application/jsonx',
      'application/json; charset=utf-16',
      'application/json, text/plain',
      'json',
    ],
    'Content-Length': [
      '+19',
      '-19',
      '019',
      '00',
      '19, 19',
      '19,19',
      '0x13',
      '1e1',
      '19.0',
      '10000000',
      '19;',
    ],
  };
  for (const [name, each] of Object.entries(values)) {
    left[`without ${name}`] = without(name);
    for (const value of each) left[`with ${name}: ${value}`] = withValue(name, value);
  }

  for (const [what, head] of Object.entries(left)) {
    test(what.replaceAll(TOKEN, 'TOKEN'), () => {
      assert.equal(new OrdinaryHeads().read(head), undefined);
    });
  }
});

suite(`heads changed at random, seed ${SEED}`, () => {
  const line = fc.oneof(
    fc.constantFrom(...PLAIN_LINES),
    fc.constantFrom(
      'Transfer-Encoding: chunked',
      'Connection: close',
      'Connection: keep-alive',
      'A: b',
      ' b',
    ),
  );
  const byte = fc.oneof(
    fc.nat(255).map(code => String.fromCharCode(code)),
    fc.constantFrom('\r\n', '\n', '\r', ' ', '\t', ':', ': ', ',', '\0', '0', '+', '\r\n '),
  );
  const change = fc.tuple(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), fc.nat(2), byte);
  const changedHead = fc
    .tuple(
      fc.shuffledSubarray(PLAIN_LINES.slice(1), { minLength: 3 }),
      fc.array(line, { maxLength: 1 }),
      fc.array(change, { maxLength: 2 }),
    )
    .map(([fields, more, changes]) =>
      changes.reduce(
        (head, [at, cut, inserted]) => {
          const position = Math.floor(at * head.length);
          return head.slice(0, position) + inserted + head.slice(position + cut);
        },
        [PLAIN_LINES[0], ...fields, ...more].join('\r\n'),
      ),
    );

  test('are taken only where a plain reading finds one meaning', () => {
    let taken = 0;
    fc.assert(
      fc.property(changedHead, head => {
        const reading = new OrdinaryHeads().read(head);
        if (reading === undefined) return;
        taken++;
        const [first, ...rest] = head.split('\r\n');
        assert.equal(first, PLAIN_LINES[0]);
        assert.match(rest.join(''), /^[ -~]+$/);
        const fields = new Map(rest.map(each => [each.split(':', 1)[0]!.toLowerCase(), each]));
        assert.equal(fields.size, rest.length, 'no name twice');
        for (const name of fields.keys()) assert.match(name, /^[a-z0-9-]+$/);
        assert.ok(!fields.has('transfer-encoding'));
        assert.match(fields.get('connection') ?? 'Connection: keep-alive', /: keep-alive$/i);
        const length = fields.get('content-length')!.split(': ')[1]!;
        assert.equal(String(Number(length)), length);
        assert.equal(reading.bodyBytes, Number(length));
        assert.equal(reading.tokenHash, hashToken(fields.get('authorization')!.split(': Bearer ')[1]!));
        assert.ok(fields.has('host') && fields.has('content-type'));
      }),
      { seed: SEED, numRuns: 20_000 },
    );
    assert.ok(taken > 1_000, `${taken} heads were taken, too few to say anything`);
  });

  test('are read the same when others were read before them', () => {
    const remembering = new OrdinaryHeads();
    fc.assert(
      fc.property(changedHead, head => {
        const expected = new OrdinaryHeads().read(head);
        for (let time = 0; time < 2; time++) assert.deepEqual(remembering.read(head), expected);
      }),
      { seed: SEED, numRuns: 5_000 },
    );
  });
});

test('a head that comes again is not read again, and no more of them are remembered than may be', () => {
  const heads = new OrdinaryHeads();
  const first = heads.read(PLAIN);
  assert.equal(heads.read(PLAIN), first);
  for (let count = 0; count < ORDINARY_HEADS_MAX; count++) {
    assert.equal(heads.read(withValue('Content-Length', String(1_000 + count)))?.bodyBytes, 1_000 + count);
  }
  const again = heads.read(PLAIN);
  assert.deepEqual(again, first);
  assert.notEqual(again, first);
});
