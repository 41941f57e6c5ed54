import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { ERRORS } from '../src/contract/errors.ts';
import type { NewPlant } from '../src/contract/plant.ts';
import { drawSendings, type Sending, send } from '../test/harness/arbitrary-requests.ts';
import { faultsOf, type LoggedRequest } from '../test/harness/client-log.ts';
import { type ServeProcess, startServe } from '../test/harness/program.ts';
import { RawConnection, type RawResponse } from '../test/harness/raw-connection.ts';
import { assertCommonHeaders, assertErrorResponse } from '../test/harness/response-assertions.ts';
import { storedRevisions } from '../test/harness/stored-revisions.ts';
import { newSqliteFile, type Scenario } from './scenario.ts';

const REQUESTS = 1_000_000;
/** The number of requests to each service and its store. */
const REQUESTS_PER_SERVICE = 5_000;
const LANES = 16;
/** The cases to generate at a time, so that memory does not grow with their number. */
const CASES_AT_A_TIME = 200;
/** The run ends after this number of faults. */
const FAULTS_MAX = 20;
const SHOWN_BYTES_MAX = 4_000;
const END_MS_MAX = 15_000;
/** From the last sent byte of a connection to its end. */
const END_OF_CONNECTION_MS_MAX = 1_000;
/** A connection that is open for longer hangs. A slow machine needs far less. */
const HANG_MS = 30_000;
const PINO_WARN = 40;

/**
 * Sends mutated requests to `serve` processes, each on a new SQLite store. Compares the responses
 * with the requests and with the stored plants. Each client closes its side after the last byte, so
 * a service that waits for more hangs.
 *
 * Faults are: a 5xx, a hanging or reset connection, a wrong response, too many responses, a stored
 * plant without a 200, a warning in the log, a crash.
 */
export const fuzzing: Scenario = {
  name: 'fuzz',
  summary: `${REQUESTS} mutated requests: no 5xx, no hang over 1 s, no crash, no plant stored without a 200`,
  needs: [],
  secondsMin: 15,
  finds: [],
  async run({ seed, budgetMs, roundsMax = Infinity, signal, tell }) {
    const untilMs = performance.now() + budgetMs;
    const total: FuzzResult = { faults: [], requests: 0, stored: 0, slowestMs: 0, responses: {} };
    const isOver = (): boolean => total.requests >= REQUESTS || total.faults.length > 0 || signal.aborted;
    for (let round = 0; round < roundsMax && !isOver() && performance.now() < untilMs; round++) {
      // The rounds have different seeds.
      await fuzz(seed * 1_000 + round, total);
      tell(`${total.requests} requests, ${total.faults.length} faults`);
    }
    const { faults, requests, stored, slowestMs, responses } = total;
    const late = slowestMs > END_OF_CONNECTION_MS_MAX ? [`a connection took ${slowestMs.toFixed(0)} ms`] : [];
    return {
      ...{ faults, late },
      measurements: {
        ...{ requests, 'plants stored': stored, 'slowest connection, ms': Math.round(slowestMs) },
        ...Object.fromEntries(
          Object.entries(responses).map(([status, count]) => [`responses ${status}`, count]),
        ),
      },
    };
  },
};

interface FuzzResult {
  faults: string[];
  requests: number;
  stored: number;
  /** The longest time from the last sent byte of a connection to its end. */
  slowestMs: number;
  /** The number of responses by status. */
  responses: Record<string, number>;
}

/** Sends requests to one service, and adds what happens to the result. */
async function fuzz(seed: number, result: FuzzResult): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const database = `sqlite:${newSqliteFile(opened)}`;
  const serve = await startServe(database);
  const run = new FuzzRun(serve, result);
  const requestsMax = result.requests + REQUESTS_PER_SERVICE;
  try {
    for (let draw = 0; result.requests < requestsMax && result.faults.length < FAULTS_MAX; draw++) {
      const left = drawSendings(serve.token, seed * DRAWS + draw, CASES_AT_A_TIME).values();
      const lane = async (): Promise<void> => {
        for (const each of left) await run.send(each);
      };
      await Promise.all(Array.from({ length: LANES }, lane));
    }
  } finally {
    const late = setTimeout(() => serve.child.kill('SIGKILL'), END_MS_MAX);
    const { exitCode, stdout } = await serve.stop('SIGTERM');
    clearTimeout(late);
    if (exitCode !== 0) result.faults.push(`the service ended with ${exitCode}`);
    for (const line of stdout.split('\n')) {
      const level = line === '' ? 0 : Number(JSON.parse(line).level);
      if (level >= PINO_WARN) result.faults.push(`the service logged: ${line}`);
    }
  }
  const stored = await storedRevisions(database);
  result.stored += stored.length;
  result.faults.push(...faultsOf(run.log, stored));
}

/** More draws than a run makes, so that no two seeds share a draw. */
const DRAWS = 1_000;

class FuzzRun {
  /** Every request with the response 200, with the plant that the response names. */
  readonly log: LoggedRequest[] = [];
  readonly #serve: ServeProcess;
  readonly #result: FuzzResult;

  constructor(serve: ServeProcess, result: FuzzResult) {
    this.#serve = serve;
    this.#result = result;
  }

  /** Sends one case and checks the responses. */
  async send(each: Sending): Promise<void> {
    try {
      using connection = await RawConnection.open(Number(new URL(this.#serve.url).port));
      await send(connection, each);
      connection.finish();
      const sentAt = performance.now();
      const late = wait(HANG_MS, 'late' as const, { ref: false });
      const ending = await Promise.race([connection.ended, late]);
      if (ending === 'late') connection.socket.destroy();
      const responses: RawResponse[] = [];
      while (connection.unread !== '') {
        const response = await connection.response();
        // 100 (Continue) is not a final response.
        if (response.status !== 100) responses.push(response);
      }
      this.#count(each, responses, performance.now() - sentAt);
      assert.equal(ending, 'closed', ending === 'late' ? 'the connection hangs' : 'the connection was reset');
      assessNumber(each.bytes, responses);
      for (const response of responses) this.#assess(response, sentAt);
    } catch (error) {
      const shown = JSON.stringify(each.bytes.toString('latin1').replaceAll(this.#serve.token, 'TOKEN'));
      const what = (error as Error).message.split('\n', 1)[0];
      this.#result.faults.push(`${what}: cut at [${each.cuts}] ${shown.slice(0, SHOWN_BYTES_MAX)}`);
    }
  }

  #count({ bytes }: Sending, responses: RawResponse[], tookMs: number): void {
    const result = this.#result;
    result.requests += Math.max(1, requestLinesIn(bytes));
    result.slowestMs = Math.max(result.slowestMs, tookMs);
    for (const { status } of responses) result.responses[status] = (result.responses[status] ?? 0) + 1;
  }

  #assess(response: RawResponse, sentAt: number): void {
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
    this.log.push({
      plant: { ...JSON.parse(body), id: BigInt(id) } as NewPlant,
      ...{ sentAt, respondedAt: performance.now() },
      response: {
        ...{ status, body, id, revision: Number(headers.get('plant-revision')) },
        ...{ outcome: headers.get('plant-outcome'), retryAfter: undefined },
      },
    });
  }
}

const ERROR_NUMBERS = new Set<number>(Object.values(ERRORS).map(({ number }) => number));

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
  const wholeMax = Math.min(requestLinesIn(bytes), emptyLinesIn(bytes));
  assert.ok(
    responses.length - rejections <= wholeMax,
    `${responses.length} responses to at most ${wholeMax} requests`,
  );
}

function requestLinesIn(bytes: Buffer): number {
  return bytes.toString('latin1').match(/(?:HTTP|RTSP|ICE)\/[0-9]/g)?.length ?? 0;
}

function emptyLinesIn(bytes: Buffer): number {
  return bytes.toString('latin1').match(/\r\n(?=\r\n)/g)?.length ?? 0;
}
