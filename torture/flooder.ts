/**
 * Sends one kind of request on many connections as fast as it is taken, until its stdin ends; then prints how many
 * answers it read, by status.
 *
 *   node torture/flooder.ts KIND PORT TOKEN
 */
import { connect, type Socket } from 'node:net';
import { makeToken } from '../src/auth/token.ts';
import { BODY_BYTES_MAX } from '../src/contract/limits.ts';
import { chunked, requestBytes } from '../test/harness/raw-connection.ts';

const CONNECTIONS = 100;
/** Of which each would hold a body for as long as it may. */
const LONG_BODY_CONNECTIONS = 900;
const REQUESTS_IN_A_BLOCK = 100;
const CHUNKED_BODY_BYTES = 2_000;
const LONG_NAME_LENGTH = 20_000;
/** A connection that was refused is tried again after this. */
const RETRY_MS = 20;

const [, , kind, port, token] = process.argv;
const answers: Record<string, number> = {};
const sockets = new Set<Socket>();
let stopping = false;

const PLANT = '{"id":1,"name":"flood"}';
const REQUESTS: Record<string, () => Uint8Array> = {
  plants: () => requestBytes(token!, { body: PLANT }),
  'long plants': () => requestBytes(token!, { body: `{"id":1,"name":"${'f'.repeat(LONG_NAME_LENGTH)}"}` }),
  'malformed tokens': () => requestBytes('a', { body: PLANT }),
  'unknown tokens': () => requestBytes(makeToken(), { body: PLANT }),
  'unusual heads': () => requestBytes(token!, { body: PLANT, headers: { 'X-Unusual': ' \t flood' } }),
  'other paths': () => Buffer.from('GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n'),
  'bytes as chunks': () => {
    const body = `{"id":1,"name":"${'f'.repeat(CHUNKED_BODY_BYTES)}"}`;
    const chunks = Array.from(body, byte => `1\r\n${byte}\r\n`).join('');
    return requestBytes(token!, { ...chunked(''), body: `${chunks}0\r\n\r\n` });
  },
};

function open(send: (socket: Socket) => void): void {
  if (stopping) return;
  const socket = connect(Number(port), '127.0.0.1');
  sockets.add(socket);
  let rest = '';
  socket.on('connect', () => send(socket));
  socket.on('data', piece => {
    const text = rest + piece.toString('latin1');
    for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g))
      answers[status!] = (answers[status!] ?? 0) + 1;
    // A status line may end in the next piece, and none is counted twice.
    rest = /HTTP\/1\.1 \d{0,3}$|HTTP\/?1?\.?1?$|HTT?$|HT?$|H$/.exec(text)?.[0] ?? '';
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    sockets.delete(socket);
    setTimeout(open, RETRY_MS, send);
  });
}

const request = REQUESTS[kind!];
if (request !== undefined) {
  const block = Buffer.concat(Array.from({ length: REQUESTS_IN_A_BLOCK }, request));
  const flood = (socket: Socket): void => {
    const more = (): void => {
      while (socket.writable && socket.write(block));
    };
    socket.on('drain', more);
    more();
  };
  for (let count = 0; count < CONNECTIONS; count++) open(flood);
} else if (kind === 'long bodies') {
  const head = requestBytes(token!, { headers: { 'Content-Length': String(BODY_BYTES_MAX) }, body: '' });
  const almost = Buffer.concat([head, Buffer.alloc(BODY_BYTES_MAX - 1, ' ')]);
  for (let count = 0; count < LONG_BODY_CONNECTIONS; count++) open(socket => socket.write(almost));
} else throw new Error(`there is no flood of ${kind}`);

process.stdin.on('end', () => {
  stopping = true;
  for (const socket of sockets) socket.destroy();
  console.log(JSON.stringify(answers));
});
process.stdin.resume();
