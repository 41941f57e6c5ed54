/**
 * Guesses tokens as fast as they are refused, until its stdin ends; then prints how many were and how many were not.
 *
 *   node torture/guesser.ts PORT
 */
import { connect } from 'node:net';
import { makeToken } from '../src/auth/token.ts';

const CONNECTIONS = 1_000;
/** On each connection at a time. */
const GUESSES = 20;
const BODY = '{"id":1,"name":"guessed"}';
const REFUSAL = 'HTTP/1.1 401 ';

const port = Number(process.argv[2]);
const counts = { refused: 0, other: 0 };
let stopping = false;

function guesses(): string {
  const heads = Array.from(
    { length: GUESSES },
    () =>
      `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${makeToken()}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  );
  return heads.join('');
}

async function guess(): Promise<void> {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const socket = connect(port, '127.0.0.1');
  let rest = '';
  let awaited = GUESSES;
  socket.on('connect', () => socket.write(guesses()));
  socket.on('data', piece => {
    const answers = (rest + piece.toString('latin1')).split('HTTP/1.1 ');
    // The last piece may end within an answer, or within its first line.
    const isWhole = (text: string): boolean => text.endsWith('}');
    const complete = answers.filter(isWhole);
    rest = isWhole(answers.at(-1)!) ? '' : `HTTP/1.1 ${answers.at(-1)}`;
    for (const answer of complete) counts[`HTTP/1.1 ${answer}`.startsWith(REFUSAL) ? 'refused' : 'other']++;
    awaited -= complete.length;
    if (awaited > 0) return;
    if (stopping) {
      socket.end();
      return;
    }
    awaited = GUESSES;
    socket.write(guesses());
  });
  socket.on('error', () => counts.other++);
  socket.on('close', resolve);
  await ended;
}

process.stdin.on('end', () => {
  stopping = true;
});
process.stdin.resume();
await Promise.all(Array.from({ length: CONNECTIONS }, guess));
console.log(JSON.stringify(counts));
