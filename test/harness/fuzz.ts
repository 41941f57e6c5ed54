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
  /** At least this many requests are sent. */
  requests: number;
  /** A connection that is still open this long after all was sent hangs. */
  waitMsMax: number;
}

export interface FuzzResult {
  /** Each promise that was broken, a line each. */
  faults: string[];
  requests: number;
  connections: number;
  stored: number;
  /** From the last byte that was sent on a connection to its end. */
  slowestMs: number;
  /** By status. */
  responses: Record<string, number>;
}

const LANES = 16;
/** Drawn at a time, so that memory does not grow with their number. */
const CASES_AT_A_TIME = 200;
/** Faults behind these say nothing new. */
const FAULTS_MAX = 20;
const SHOWN_BYTES_MAX = 4_000;
const END_MS_MAX = 15_000;

/**
 * Sends mutated requests to a `serve` process on a new SQLite store, and compares what came back with what was sent and
 * what is stored. A client closes its side behind what it sends, so a service that waits for more is one that hangs.
 *
 * @returns with the faults found: a 5xx, a connection that hangs or is reset, an answer that is none of the interface,
 *   more answers than whole requests, a row that was not answered 200, a service that crashed or logged something
 */
export async function fuzz({ seed, requests, waitMsMax }: FuzzOrder): Promise<FuzzResult> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-fuzz-'));
  const database = `sqlite:${join(folder, 'plants.db')}`;
  const serve = await startServe(database);
  const run = new FuzzRun(serve, waitMsMax);
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
/** More than a run makes, so that the next seed has draws of its own. */
const DRAWS = 1_000;

class FuzzRun {
  /** Every request that was answered 200, with the plant that the answer names. */
  readonly log: LoggedRequest[] = [];
  readonly result: FuzzResult = {
    ...{ faults: [], requests: 0, connections: 0, stored: 0, slowestMs: 0, responses: {} },
  };
  readonly #serve: ServeProcess;
  readonly #waitMsMax: number;

  constructor(serve: ServeProcess, waitMsMax: number) {
    this.#serve = serve;
    this.#waitMsMax = waitMsMax;
  }

  /** Sends one case and judges what came back. */
  async send(each: Sending): Promise<void> {
    try {
      using connection = await RawConnection.open(Number(new URL(this.#serve.url).port));
      await send(connection, each);
      connection.finish();
      const sentAt = performance.now();
      const late = wait(this.#waitMsMax, 'late' as const, { ref: false });
      const ending = await Promise.race([connection.ended, late]);
      if (ending === 'late') connection.socket.destroy();
      const responses: RawResponse[] = [];
      while (connection.unread !== '') {
        const response = await connection.response();
        // A 100 (Continue) is no final one.
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
    assert.ok(status < 500, `answered ${status} ${body}`);
    if (status !== 200) {
      const { error } = JSON.parse(body) as { error: number };
      assert.ok(ERROR_NUMBERS.has(error), `no number of the catalogue: ${body}`);
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

/** Never more answers than whole requests, but for one refusal of what is none, which closes the connection. */
function assessNumber(bytes: Buffer, responses: RawResponse[]): void {
  const closing = responses.findIndex(({ headers }) => headers.get('connection') === 'close');
  assert.ok(
    closing === -1 || closing === responses.length - 1,
    'an answer behind one that closes the connection',
  );
  const last = responses.at(-1);
  const rejections = closing !== -1 && last!.status >= 400 ? 1 : 0;
  const wholeMax = Math.min(requestLinesIn(bytes), emptyLinesIn(bytes));
  assert.ok(
    responses.length - rejections <= wholeMax,
    `${responses.length} answers to ${wholeMax} requests at most`,
  );
}

function requestLinesIn(bytes: Buffer): number {
  return bytes.toString('latin1').match(/HTTP\/[0-9]/g)?.length ?? 0;
}

function emptyLinesIn(bytes: Buffer): number {
  return bytes.toString('latin1').match(/\r\n(?=\r\n)/g)?.length ?? 0;
}
