import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { byteMutation, fraction } from './arbitrary-bodies.ts';
import { type RawConnection, requestBytes } from './raw-connection.ts';

/** The bytes for one connection, sent with pauses at the cuts (fractions of the length). */
export interface Sending {
  bytes: Buffer;
  cuts: number[];
}

/** Replaced by the token after all changes to the headers. */
const TOKEN_PLACE = 'TOKEN';

// Long ids: after a mutation they do not become the id of another case, and they rarely repeat.
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
  `Authorization: bearer ${TOKEN_PLACE}`,
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

/** One change to the lines of a header section. `at` is a fraction of their number. */
const headersChange: fc.Arbitrary<(lines: string[], bodyBytes: number) => string[]> = fc.oneof(
  fc.tuple(fraction, oddLine).map(
    ([at, line]) =>
      (lines: string[]) =>
        lines.toSpliced(1 + Math.floor(at * lines.length), 0, line),
  ),
  fraction.map(at => (lines: string[]) => lines.toSpliced(Math.floor(at * lines.length), 1)),
  fraction.map(at => (lines: string[]) => [...lines, lines[Math.floor(at * lines.length)]!]),
  fraction.map(at => (lines: string[]) => {
    const index = 1 + Math.floor(at * (lines.length - 1));
    return lines.with(index, (lines[index] ?? '').toLowerCase());
  }),
  oddField.map(
    field => (lines: string[]) =>
      lines.map(line => (line.split(':', 1)[0] === field.split(':', 1)[0] ? field : line)),
  ),
  oddRequestLine.map(line => (lines: string[]) => lines.with(0, line)),
  oddLength.map(
    length => (lines: string[], bodyBytes: number) =>
      lines.map(line => (line.startsWith('Content-Length') ? `Content-Length: ${length(bodyBytes)}` : line)),
  ),
);

/** A request. One in three has changes in its header section. */
const request = (token: string) =>
  fc
    .tuple(
      fc.oneof({ weight: 9, arbitrary: plantBody }, { weight: 1, arbitrary: oddBody }),
      onceInThree(fc.array(headersChange, { minLength: 1, maxLength: 2 })),
    )
    .map(([body, changes]) => {
      const bytes = requestBytes(TOKEN_PLACE, { body });
      const headersEnd = bytes.indexOf('\r\n\r\n');
      const lines = changes.reduce(
        (changed, change) => change(changed, Buffer.byteLength(body)),
        bytes.toString('latin1', 0, headersEnd).split('\r\n'),
      );
      const headers = lines.join('\r\n').replaceAll(TOKEN_PLACE, token);
      return Buffer.concat([Buffer.from(headers, 'latin1'), bytes.subarray(headersEnd)]);
    });

/** One change to the bytes of all requests of a connection. */
const byteChange: fc.Arbitrary<(bytes: Buffer) => Buffer> = fc.oneof(
  { weight: 4, arbitrary: byteMutation },
  {
    weight: 1,
    arbitrary: fraction.map(at => (bytes: Buffer) => bytes.subarray(0, Math.floor(at * bytes.length))),
  },
);

/** Two of three arrays are empty. */
function onceInThree<T>(elements: fc.Arbitrary<T[]>): fc.Arbitrary<T[]> {
  return fc.oneof({ weight: 2, arbitrary: fc.constant<T[]>([]) }, { weight: 1, arbitrary: elements });
}

/**
 * Up to five requests on one connection: POSTs of new plants. Some have changes in their bodies,
 * their headers or any of their bytes. They are sent in one or in several chunks.
 *
 * @param token one that the service accepts
 */
export function arbitrarySending(token: string): fc.Arbitrary<Sending> {
  return fc
    .tuple(
      fc.array(request(token), { minLength: 1, maxLength: 5 }),
      onceInThree(fc.array(byteChange, { minLength: 1, maxLength: 2 })),
      onceInThree(fc.array(fraction, { minLength: 1, maxLength: 3 })),
    )
    .map(([requests, changes, cuts]) => ({
      bytes: changes.reduce<Buffer>((bytes, change) => change(bytes), Buffer.concat(requests)),
      cuts,
    }));
}

/**
 * Writes on a connection, in chunks that arrive separately.
 *
 * @param last written after everything else
 */
export async function send(
  connection: RawConnection,
  { bytes, cuts }: Sending,
  last = Buffer.alloc(0),
): Promise<void> {
  connection.socket.setNoDelay(true);
  let sent = 0;
  for (const cut of cuts.map(at => Math.floor(at * bytes.length)).sort((one, other) => one - other)) {
    connection.write(bytes.subarray(sent, cut));
    sent = cut;
    await wait(2);
  }
  connection.write(Buffer.concat([bytes.subarray(sent), last]));
}
