import type { Sending } from './arbitrary-requests.ts';

/** Longer header sections are read anew each time. */
const REMEMBERED_MAX_BYTES = 3 * 1024;

/** Follows each header section and its body: it is served only where both were read as meant. */
const LAST_REQUEST = 'GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

/** Requests with header sections of one kind, each with its own plant. */
export function sendingsOf(kind: 'plain' | 'odd', token: string): Sending[] {
  const firstId = kind === 'odd' ? 20_000_000 : 10_000_000;
  return headerSections(token)[kind].map((headers, index) => {
    const body = `{"id":${firstId + index},"name":"ABCD"}`;
    return { bytes: Buffer.from(`${headers}\r\n\r\n${body}${LAST_REQUEST}`, 'latin1'), cuts: [] };
  });
}

/**
 * Header sections that clients send, and those that a lax parser could read in a wrong way. More are
 * in `request-cases.ts`.
 */
function headerSections(token: string): Record<'plain' | 'odd', string[]> {
  const lines = [
    'POST /plants HTTP/1.1',
    'Host: plants.example',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    'Content-Length: 29',
  ];
  const plain = lines.join('\r\n');
  const withLines = (...more: string[]): string[] => more.map(line => `${plain}\r\n${line}`);
  const withValues = (name: string, ...values: string[]): string[] =>
    values.map(value => plain.replace(new RegExp(`^${name}: .*$`, 'm'), () => `${name}: ${value}`));
  const ofLength = (bytes: number): string => `${plain}\r\nX-Padding: `.padEnd(bytes, 'a');
  return {
    plain: [
      [lines[0], ...lines.slice(1).reverse()].join('\r\n'),
      plain.replace(/^[\w-]+:/gm, name => name.toLowerCase()),
      plain.replace(/^[\w-]+:/gm, name => name.toUpperCase()),
      ...withValues('Host', 'plants.example:65535', '127.0.0.1:8080'),
      ...withValues('Content-Type', 'application/json; charset=utf-8', 'APPLICATION/JSON;charset="UTF-8"'),
      ...withLines('User-Agent: curl/8.5.0\r\nAccept: */*\r\nCookie: a=b; c="d"', 'Connection: Keep-Alive'),
      ofLength(REMEMBERED_MAX_BYTES),
    ],
    odd: [
      ofLength(REMEMBERED_MAX_BYTES + 1),
      ...['\r\nPOST /plants HTTP/1.1', 'POST /plants HTTP/1.1 ', 'POST /plants http/1.1'].map(line =>
        [line, ...lines.slice(1)].join('\r\n'),
      ),
      ...withLines(
        ...['-Note: a', 'X_Note: a', 'X-N\xf6te: a', 'X-Note:a', 'X-Note:  a', 'X-Note:\ta', 'X-Note: a '],
        ...['X-Note: a\t', 'X-Note: a\tb', 'X-Note:', 'X-Note: ', 'X-Note: \xf6', 'X-Note: a\x7fb'],
        ...[
          'X-Note: a\nX-More: b',
          'X-Note: a\r\nx-note: b',
          'Content-Length: 29',
          'authorization: Bearer a',
        ],
        ...['Expect: 100-continue', 'EXPECT: flowers', 'transfer-encoding: identity', 'Trailer: Expires'],
        ...['Connection: keep-alive, close', 'Connection: keep-alive\r\nConnection: keep-alive'],
        ...['TE: trailers', 'Keep-Alive: timeout=5', 'Proxy-Connection: keep-alive', 'Upgrade: h2c'],
        'Connection: upgrade',
      ),
      ...withValues('Host', 'a:', 'a:123456', 'a,b', ':80'),
      ...withValues('Authorization', `Bearer ${token},`, `Bearer ${token} ${token}`),
      ...withValues('Content-Length', '029', '1e1', '29.0', '29;', '0', '10000000'),
    ],
  };
}
