import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { ERRORS } from '../../src/contract/errors.ts';
import type { NewPlant } from '../../src/contract/plant.ts';
import { arbitrarySending, type Sending, send } from './arbitrary-requests.ts';
import { faultsOf, type LoggedRequest } from './client-log.ts';
import { type ServeProcess, startServe } from './program.ts';
import { RawConnection, type RawResponse } from './raw-connection.ts';
import { assertCommonHeaders, assertErrorResponse } from './response-assertions.ts';
import { storedRevisions } from './stored-revisions.ts';

export interface FuzzOrder {
  seed: number;
  /** The least number of requests to send. */
  requests: number;
  /** A connection that is open this long after the last byte was sent is a fault: it hangs. */
  hangTimeoutMs: number;
}

export interface FuzzResult {
  /** One line for each broken promise. */
  faults: string[];
  requests: number;
  connections: number;
  stored: number;
  /** The longest time from the last sent byte of a connection to its end. */
  slowestMs: number;
  /** The number of responses by status. */
  responses: Record<string, number>;
}

const LANES = 16;
/** The cases to generate at a time, so that memory does not grow with their number. */
const CASES_AT_A_TIME = 200;
/** The run ends after this number of faults. */
const FAULTS_MAX = 20;
const SHOWN_BYTES_MAX = 4_000;
const END_MS_MAX = 15_000;

/**
 * Sends mutated requests to a `serve` process on a new SQLite store. Compares the responses with
 * the requests and with the stored plants. Each client closes its side after the last byte, so a
 * service that waits for more hangs. A warning in the log is a fault, too.
 *
 * @returns the faults: a 5xx, a hanging or reset connection, a wrong response, too many responses,
 *   a stored plant without a 200, a crash
 */
export async function fuzz({ seed, requests, hangTimeoutMs }: FuzzOrder): Promise<FuzzResult> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-fuzz-'));
  const database = `sqlite:${join(folder, 'plants.db')}`;
  const serve = await startServe(database);
  const run = new FuzzRun(serve, hangTimeoutMs);
  const { result } = run;
  try {
    for (let draw = 0; result.requests < requests && result.faults.length < FAULTS_MAX; draw++) {
      const left = fc
        .sample(arbitrarySending(serve.token), { seed: seed * DRAWS + draw, numRuns: CASES_AT_A_TIME })
        .values();
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
  await rm(folder, { recursive: true });
  result.stored = stored.length;
  result.faults.push(...faultsOf(run.log, stored));
  return result;
}

const PINO_WARN = 40;
/** More draws than a run makes, so that no two seeds share a draw. */
const DRAWS = 1_000;

class FuzzRun {
  /** Every request with the response 200, with the plant that the response names. */
  readonly log: LoggedRequest[] = [];
  readonly result: FuzzResult = {
    ...{ faults: [], requests: 0, connections: 0, stored: 0, slowestMs: 0, responses: {} },
  };
  readonly #serve: ServeProcess;
  readonly #hangTimeoutMs: number;

  constructor(serve: ServeProcess, hangTimeoutMs: number) {
    this.#serve = serve;
    this.#hangTimeoutMs = hangTimeoutMs;
  }

  /** Sends one case and checks the responses. */
  async send(each: Sending): Promise<void> {
    try {
      using connection = await RawConnection.open(Number(new URL(this.#serve.url).port));
      await send(connection, each);
      connection.finish();
      const sentAt = performance.now();
      const late = wait(this.#hangTimeoutMs, 'late' as const, { ref: false });
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
      this.result.faults.push(`${what}: cut at [${each.cuts}] ${shown.slice(0, SHOWN_BYTES_MAX)}`);
    }
  }

  #count({ bytes }: Sending, responses: RawResponse[], tookMs: number): void {
    const { result } = this;
    result.connections++;
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
  return bytes.toString('latin1').match(/HTTP\/[0-9]/g)?.length ?? 0;
}

function emptyLinesIn(bytes: Buffer): number {
  return bytes.toString('latin1').match(/\r\n(?=\r\n)/g)?.length ?? 0;
}
