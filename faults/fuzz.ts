import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { ERRORS } from '../src/core/contract/errors.ts';
import type { NewPlant } from '../src/core/contract/plant.ts';
import { drawSendings, type Sending, send } from '../test/harness/arbitrary-requests.ts';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { sendingsOf } from '../test/harness/header-sections.ts';
import { faultsOf } from '../test/harness/log-faults.ts';
import { type ServeProcess, startServe } from '../test/harness/program.ts';
import { RawConnection, type RawResponse } from '../test/harness/raw-connection.ts';
import { assertCommonHeaders, assertErrorResponse } from '../test/harness/response-assertions.ts';
import { addToken } from '../test/harness/running-service.ts';
import { storedRevisions } from '../test/harness/stored-revisions.ts';
import { newSqliteFile, type Scenario } from './scenario.ts';

const REQUESTS = 1_000_000;
const LANES = 16;
const DRAWS_PER_STORE = 10;
const SHOWN_CHARACTERS_MAX = 4_000;
const END_MAX_MS = 15_000;
/** From the last sent byte of a connection to its end. */
const END_OF_CONNECTION_MAX_MS = 1_000;
/** A connection that is open for longer hangs. A slow machine needs far less. */
const HANG_MS = 30_000;
const PINO_WARN = 40;

interface FuzzResult {
  faults: string[];
  /** The longest time from the last sent byte of a connection to its end. */
  slowestMs: number;
  /** Numbers of requests, responses and cases. */
  counts: { requests: number; cases: number; [what: string]: number };
}

/**
 * Sends the same mutated requests to two `serve` processes: to one perhaps in several pieces, to the
 * other in one write, after another request. What a client sees and what is stored must not depend
 * on that. Each client closes its side after the last byte, so a service that waits for more hangs.
 *
 * Faults are: a difference, a 5xx, a hanging or reset connection, a wrong response, too many
 * responses, a stored plant without a 200, a warning in the log, a crash.
 */
export const fuzzing: Scenario = {
  name: 'fuzz',
  summary: `${REQUESTS} mutated requests: equal responses however they are cut, no 5xx, no hang over 1 s, no crash`,
  needs: [],
  secondsMin: 15,
  finds: [],
  /** `roundsMax` is the number of draws. */
  async run({ seed, budgetMs, roundsMax = Number.POSITIVE_INFINITY, signal, tell }) {
    const untilMs = performance.now() + budgetMs;
    const result: FuzzResult = { faults: [], slowestMs: 0, counts: { requests: 0, cases: 0 } };
    const { faults, counts } = result;
    let draws = 0;
    const isOver = (): boolean =>
      signal.aborted ||
      faults.length > 0 ||
      draws >= roundsMax ||
      counts.requests >= REQUESTS ||
      performance.now() >= untilMs;
    while (!isOver()) {
      await fuzz(result, function* (token) {
        yield [...sendingsOf('plain', token), ...sendingsOf('odd', token)];
        do yield drawSendings(token, seed, draws);
        while (++draws % DRAWS_PER_STORE !== 0 && !isOver());
      });
      tell(`${counts.requests} requests, ${faults.length} faults`);
    }
    const slowestMs = Math.round(result.slowestMs);
    const late = slowestMs > END_OF_CONNECTION_MAX_MS ? [`a connection took ${slowestMs} ms`] : [];
    return { faults, late, measurements: { ...counts, 'slowest connection, ms': slowestMs } };
  },
};

/** A service on a store of its own, and what its clients know. */
interface Target {
  serve: ServeProcess;
  database: string;
  /** Every request with the response 200, with the plant that the response names. */
  log: LoggedRequest[];
  result: FuzzResult;
}

/** Sends cases to two services with new stores and the same token. */
async function fuzz(result: FuzzResult, draws: (token: string) => Iterable<Sending[]>): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const [file, copy] = [newSqliteFile(opened), newSqliteFile(opened)];
  const token = await addToken(`sqlite:${file}`, 'fuzz');
  copyFileSync(file, copy);
  const start = async (database: string): Promise<Target> => {
    const serve = opened.use(await startServe(database));
    return { serve, database, log: [], result };
  };
  const [inPieces, inOneWrite] = [await start(`sqlite:${file}`), await start(`sqlite:${copy}`)];

  const compare = async (each: Sending): Promise<void> => {
    const text = each.bytes.toString('latin1');
    count(result, 'cases');
    try {
      const seen = await Promise.all([exchange(inPieces, each), exchange(inOneWrite, each, true)]);
      if (rejectedEarly(seen)) count(result, 'inconclusive cases');
      else assert.equal(seen[0], seen[1], 'the responses differ');
    } catch (error) {
      const shown = JSON.stringify(text.replaceAll(token, 'TOKEN')).slice(0, SHOWN_CHARACTERS_MAX);
      result.faults.push(`${(error as Error).message}: cut at [${each.cuts}] ${shown}`);
    }
  };
  for (const sendings of draws(token)) {
    const left = sendings.values();
    const lane = async (): Promise<void> => {
      for (const each of left) if (result.faults.length === 0) await compare(each);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  }
  for (const target of [inPieces, inOneWrite]) await end(target);
}

function count({ counts }: FuzzResult, what: string, by = 1): void {
  counts[what] = (counts[what] ?? 0) + by;
}

/**
 * Sends a case, and checks the responses.
 *
 * @param isWhole sends it in one write, after another request
 * @returns what the client receives, without dates and interim responses
 */
async function exchange(target: Target, { bytes, cuts }: Sending, isWhole = false): Promise<string> {
  const { serve, result } = target;
  using connection = await RawConnection.open(Number(new URL(serve.url).port));
  if (isWhole) {
    connection.write('GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.equal((await connection.response()).status, 404);
  }
  const sentAt = performance.now();
  await send(connection, { bytes, cuts: isWhole ? [] : cuts });
  connection.finish();
  const finishedAt = performance.now();
  const ending = await Promise.race([connection.ended, wait(HANG_MS, 'late' as const, { ref: false })]);
  // A 100 (Continue) depends on the cuts: it is sent only if no part of the body has arrived.
  const seen = connection.unread
    .replace(/^Date: .*\r\n/gm, '')
    .replaceAll('HTTP/1.1 100 Continue\r\n\r\n', '');
  const responses: RawResponse[] = [];
  while (connection.unread !== '') {
    const response = await connection.response();
    count(result, `responses ${response.status}`);
    // 100 (Continue) is not a final response.
    if (response.status !== 100) responses.push(response);
  }
  count(result, 'requests', Math.max(1, requestLinesIn(bytes)));
  result.slowestMs = Math.max(result.slowestMs, performance.now() - finishedAt);
  assert.equal(ending, 'closed', ending === 'late' ? 'the connection hangs' : 'the connection was reset');
  assessNumber(bytes, responses);
  for (const response of responses) assess(response, sentAt, target.log);
  return seen;
}

function assess(response: RawResponse, sentAt: number, log: LoggedRequest[]): void {
  const { status, headers, body } = response;
  assert.ok(status < 500, `response ${status} ${body}`);
  if (status !== 200) {
    const { error } = JSON.parse(body) as { error: number };
    assert.ok(ERROR_NUMBERS.has(error), `not a number of the catalogue: ${body}`);
    assertErrorResponse(response, error);
    return;
  }
  assertCommonHeaders(response);
  const id = headers.get('plant-id');
  if (id === undefined) {
    assert.ok('openapi' in JSON.parse(body), `neither a plant nor the description: ${body}`);
    return;
  }
  log.push({
    plant: { ...JSON.parse(body), id: BigInt(id) } as NewPlant,
    sentAt,
    respondedAt: performance.now(),
    response: {
      status,
      body,
      id,
      revision: Number(headers.get('plant-revision')),
      outcome: headers.get('plant-outcome'),
      retryAfter: undefined,
    },
  });
}

/** Stops the service, and checks its log and its store. */
async function end({ serve, database, log, result }: Target): Promise<void> {
  const late = setTimeout(() => serve.child.kill('SIGKILL'), END_MAX_MS);
  const { exitCode, stdout } = await serve.stop('SIGTERM');
  clearTimeout(late);
  if (exitCode !== 0) result.faults.push(`the service ended with ${exitCode}`);
  for (const line of stdout.split('\n')) {
    const level = line === '' ? 0 : Number(JSON.parse(line).level);
    if (level >= PINO_WARN) result.faults.push(`the service logged: ${line}`);
  }
  const stored = await storedRevisions(database);
  count(result, 'plants stored', stored.length);
  result.faults.push(...faultsOf(log, stored));
}

const ERROR_NUMBERS = new Set<number>(Object.values(ERRORS).map(({ number }) => number));

/**
 * Whether one of the two rejected a request before all of it had arrived, which closes the
 * connection. How much has arrived depends on timing.
 */
function rejectedEarly(seen: string[]): boolean {
  const [one, other] = seen.map(text => text.split(/(?=HTTP\/1\.1 \d{3} )/)) as [string[], string[]];
  const first = one.findIndex((response, index) => response !== other[index]);
  const isRejection = /^HTTP\/1\.1 4[\s\S]*\r\nConnection: close\r\n/;
  return [one, other].some(each => first === each.length - 1 && isRejection.test(each[first] ?? ''));
}

/**
 * There are at most as many responses as whole requests. One more may reject invalid bytes; it
 * closes the connection.
 */
function assessNumber(bytes: Buffer, responses: RawResponse[]): void {
  const closing = responses.findIndex(({ headers }) => headers.get('connection') === 'close');
  assert.ok(
    closing === -1 || closing === responses.length - 1,
    'a response after one that closes the connection',
  );
  const last = responses.at(-1);
  const rejections = closing !== -1 && last!.status >= 400 ? 1 : 0;
  const emptyLines = bytes.toString('latin1').match(/\r\n(?=\r\n)/g)?.length ?? 0;
  const wholeMax = Math.min(requestLinesIn(bytes), emptyLines);
  assert.ok(
    responses.length - rejections <= wholeMax,
    `${responses.length} responses to at most ${wholeMax} requests`,
  );
}

function requestLinesIn(bytes: Buffer): number {
  return bytes.toString('latin1').match(/(?:HTTP|RTSP|ICE)\/[0-9]/g)?.length ?? 0;
}
