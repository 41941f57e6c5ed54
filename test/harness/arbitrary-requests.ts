import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { byteMutation, fraction } from './arbitrary-bodies.ts';
import { type RawConnection, requestBytes } from './raw-connection.ts';
import { ACCEPTED_REQUESTS, NOT_HTTP, REJECTED_REQUESTS } from './request-cases.ts';

/** The bytes for one connection, sent with pauses at the cuts (fractions of the length). */
export interface Sending {
  bytes: Buffer;
  cuts: number[];
}

/**
 * Requests that differ in form. Without HEAD, because only its request says that the response has
 * no body. Without well-formed tokens, whose lookup takes a while, and without bodies that are too
 * long for a small limit.
 */
const ODD_REQUESTS = [...Object.values(REJECTED_REQUESTS).flat(), ...ACCEPTED_REQUESTS, ...NOT_HTTP].filter(
  ({ isHead, error }) => isHead !== true && error !== 40102 && error !== 41301,
);
const TOO_LONG = { headers: { 'Content-Length': '1048577' } };
const ASCII_BODY = '{"id":123456789012345678,"name":"A"}';

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

/** A plain request, one of {@link ODD_REQUESTS}, or a plain one with changes in its header section. */
function request(token: string): fc.Arbitrary<Buffer> {
  const plain = plantBody.map(body => requestBytes(token, { body }));
  const odd = fc
    .tuple(id, fc.constantFrom(...ODD_REQUESTS))
    .map(([digits, each]) => each.bytes(token, `{"id":${digits},"name":"A"}`));
  const oddLines = [
    requestBytes(token, TOO_LONG),
    ...ODD_REQUESTS.map(each => each.bytes(token, ASCII_BODY)),
  ].flatMap(bytes => linesOf(bytes)[0]);
  const lineChanges = fc.array(lineChange([...new Set(oddLines)]), { minLength: 1, maxLength: 2 });
  const changed = fc.tuple(plain, lineChanges).map(([bytes, changes]) => {
    const [lines, rest] = linesOf(bytes);
    const headers = changes.reduce((before, change) => change(before), lines).join('\r\n');
    return Buffer.concat([Buffer.from(headers, 'latin1'), rest]);
  });
  return fc.oneof(
    { weight: 6, arbitrary: plain },
    { weight: 2, arbitrary: odd },
    { weight: 2, arbitrary: changed },
  );
}

/** The lines of a header section, and all bytes from its end on. */
function linesOf(bytes: Buffer): [lines: string[], rest: Buffer] {
  const found = bytes.indexOf('\r\n\r\n');
  const end = found === -1 ? bytes.length : found;
  return [bytes.toString('latin1', 0, end).split('\r\n'), bytes.subarray(end)];
}

/** One change to the lines of a header section. */
function lineChange(oddLines: string[]): fc.Arbitrary<(lines: string[]) => string[]> {
  const kind = fc.constantFrom('insert', 'replace', 'delete', 'repeat', 'lower case');
  return fc.tuple(kind, fraction, fc.constantFrom(...oddLines)).map(([what, at, odd]) => lines => {
    const index = Math.floor(at * lines.length);
    const line = lines[index] ?? '';
    if (what === 'insert') return lines.toSpliced(index + 1, 0, odd);
    if (what === 'replace') return lines.toSpliced(index, 1, odd);
    if (what === 'delete') return lines.toSpliced(index, 1);
    if (what === 'repeat') return [...lines, line];
    return lines.toSpliced(index, 1, line.toLowerCase());
  });
}

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

/** The cases of a draw. Memory does not grow with the number of draws. */
const CASES_PER_DRAW = 200;
/** More draws than a run makes, so that no two seeds share a draw. */
const DRAWS_PER_SEED = 1_000_000;

/**
 * Cases of up to five requests on one connection: POSTs of new plants. Some have changes in their
 * bodies, their headers or any of their bytes. They are sent in one or in several chunks.
 *
 * @param draw another number draws other cases
 */
export function drawSendings(token: string, seed: number, draw: number): Sending[] {
  const sendings = fc
    .tuple(
      fc.array(request(token), { minLength: 1, maxLength: 5 }),
      onceInThree(fc.array(byteChange, { minLength: 1, maxLength: 2 })),
      onceInThree(fc.array(fraction, { minLength: 1, maxLength: 3 })),
    )
    .map(([requests, changes, cuts]) => ({
      bytes: changes.reduce<Buffer>((bytes, change) => change(bytes), Buffer.concat(requests)),
      cuts,
    }));
  return fc.sample(sendings, { seed: seed * DRAWS_PER_SEED + draw, numRuns: CASES_PER_DRAW });
}

/** Writes on a connection, in chunks that arrive separately. */
export async function send(connection: RawConnection, { bytes, cuts }: Sending): Promise<void> {
  connection.socket.setNoDelay(true);
  let sent = 0;
  for (const cut of cuts.map(at => Math.floor(at * bytes.length)).sort((one, other) => one - other)) {
    connection.write(bytes.subarray(sent, cut));
    sent = cut;
    await wait(2);
  }
  connection.write(bytes.subarray(sent));
}
