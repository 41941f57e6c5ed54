import assert from 'node:assert/strict';
import type { NotConfirmed, WriteResult } from '../../src/core/commit/plant-commits.ts';
import { ERRORS, type ErrorName } from '../../src/core/contract/errors.ts';
import { REQUEST_TIMEOUT_MS } from '../../src/core/contract/limits.ts';
import { LAST_READS_MS, SHUTDOWN_GRACE_MS, TIMEOUT_POLL_INTERVAL_MS } from '../../src/server/plant-server.ts';
import {
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_MS,
  LINGER_MS,
  SHUTDOWN_MS,
  UNTAKEN_MAX_MS,
} from '../../src/server/timeouts.ts';
import { OTHER_TOKEN, PAGE, type SentRequest } from './connection-requests.ts';
import type { ModelSocket } from './model-socket.ts';
import { count, type Happened } from './part.ts';

/** Timers are late, the process computes, and the kernel takes its time. */
const SLACK_MS = 150;
const CHECKED_LATE_MS = TIMEOUT_POLL_INTERVAL_MS + SLACK_MS;
/** A token is looked up twice, for at most 1 s each. */
const HANDLED_MAX_MS = 2_000 + SLACK_MS;
/** What arrives whole with its header section, up to this length, is discarded before the response. */
const SURELY_DISCARDED_BYTES = 8 * 1024;
const NAMES = new Map((Object.keys(ERRORS) as ErrorName[]).map(name => [ERRORS[name].number, name]));
/** They end the connection, since what follows cannot be read. */
const FATAL: readonly ErrorName[] = ['badHttp', 'headersTooLarge', 'tooSlow'];

/** What all connections of a run share. */
export interface RunState {
  readonly happened: Happened;
  /** Plants that were queued; undefined until they are settled. */
  readonly written: Map<bigint, { result: WriteResult | NotConfirmed; atMs: number } | undefined>;
  /** Ids of requests whose response was sent. */
  readonly answered: Set<bigint>;
  readonly isMemoryTight: boolean;
  readonly isRateLimited: boolean;
  readonly areTokensUnavailable: boolean;
  revokedAtMs: number;
  stopAtMs: number;
}

/** A response as the client got it. */
interface Received {
  status: number;
  error: ErrorName | undefined;
  fields: ReadonlyMap<string, string>;
  body: string;
}

function errorOf(status: number, body: string): ErrorName | undefined {
  return status >= 400 && body !== '' ? NAMES.get(JSON.parse(body).error) : undefined;
}

/** Checks one connection by what its client has sent and what it was sent. */
export class ConnectionOracle {
  readonly #run: RunState;
  readonly #now: () => number;
  readonly #requests: readonly SentRequest[];
  readonly #socket: ModelSocket;
  readonly #openedAtMs: number;
  #text = '';
  /** The next request without a response. */
  #next = 0;
  #hasContinue = false;
  #lastResponseAtMs: number;
  #hasArrived = false;
  /** Until when the client had not taken everything. */
  #stuckUntilMs = 0;
  /** When a response with `Connection: close` was sent. */
  #closeAtMs: number | undefined;
  #clientEndedAtMs: number | undefined;
  isReset = false;
  #isClosed = false;

  constructor(run: RunState, now: () => number, requests: readonly SentRequest[], socket: ModelSocket) {
    this.#run = run;
    this.#now = now;
    this.#requests = requests;
    this.#socket = socket;
    this.#openedAtMs = now();
    this.#lastResponseAtMs = now();
  }

  /** Responses so far. */
  get responses(): number {
    return this.#next;
  }

  get hasContinue(): boolean {
    return this.#hasContinue;
  }

  /** Whether the service has said that the connection ends, or has ended it. */
  get isEnding(): boolean {
    return this.#closeAtMs !== undefined || this.#socket.finishedAtMs !== undefined;
  }

  /** Whether it has sent no request, or has been sent all responses. */
  get isQuiet(): boolean {
    const isAwaiting = this.#hasBegun(this.#next) && this.#closeAtMs === undefined;
    return this.#socket.destroyed || (!isAwaiting && this.#socket.writableLength === 0);
  }

  /** Whether a part of this request has arrived. */
  #hasBegun(index: number): boolean {
    const request = this.#requests[index];
    return request !== undefined && request.beganAtMs <= this.#now();
  }

  onArrival(): void {
    this.#hasArrived = true;
  }

  onClientEnd(): void {
    this.#clientEndedAtMs = this.#now();
  }

  onSent(bytes: Buffer): void {
    this.#text += bytes.toString('latin1');
    while (this.#readResponse());
  }

  /** @returns false if there is no whole response */
  #readResponse(): boolean {
    const headEnd = this.#text.indexOf('\r\n\r\n');
    if (headEnd === -1) return false;
    const [line = '', ...lines] = this.#text.slice(0, headEnd).split('\r\n');
    const fields = new Map(lines.map(each => each.toLowerCase().split(': ', 2) as [string, string]));
    const status = Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(line)?.[1]);
    const request = this.#requests[this.#next];
    // An error before the end of the header section does not know that it responds to HEAD.
    const hasNoBody = status === 100 || (status === 200 && request?.expected === 'empty');
    const end = headEnd + 4 + (hasNoBody ? 0 : Number(fields.get('content-length')));
    if (this.#text.length < end) return false;
    const body = this.#text.slice(headEnd + 4, end);
    this.#text = this.#text.slice(end);
    assert.equal(this.#closeAtMs, undefined, 'something is sent after the last response');
    if (status === 100) this.#checkContinue(request);
    else this.#checkResponse(request, { status, fields, body, error: errorOf(status, body) });
    return true;
  }

  #checkContinue(request: SentRequest | undefined): void {
    count(this.#run.happened, '100 (Continue)');
    const isExpected = request?.expectsContinue === true && request.headersAtMs <= this.#now();
    assert.ok(isExpected && !this.#hasContinue, '100 (Continue) comes for another request');
    this.#hasContinue = true;
  }

  #checkResponse(request: SentRequest | undefined, response: Received): void {
    const { status, error, fields } = response;
    const now = this.#now();
    const isLast = fields.get('connection') === 'close';
    count(this.#run.happened, error ?? `${status}`);
    if (request === undefined || request.beganAtMs > now) {
      // A connection on which nothing comes gets a response, too.
      const isLate = this.#next === 0 && now - this.#openedAtMs >= HEADERS_TIMEOUT_MS - SLACK_MS;
      assert.ok(error === 'tooSlow' && isLate && isLast, 'a response without a request');
      count(this.#run.happened, 'no request on a new connection');
    } else {
      this.#checkMeaning(request, response);
      this.#checkEnding(request, error, isLast);
      this.#run.answered.add(request.id);
    }
    this.#next++;
    this.#hasContinue = false;
    this.#lastResponseAtMs = now;
    if (isLast) this.#closeAtMs = now;
  }

  /** Whether the response is that of the request, and says what has happened. */
  #checkMeaning(request: SentRequest, response: Received): void {
    const { status, error, fields, body } = response;
    const origin = fields.get('access-control-allow-origin');
    const isOfRequest = error === undefined || !['shuttingDown', ...FATAL].includes(error);
    if (origin !== undefined || isOfRequest)
      assert.equal(origin, request.origin, `${request.id} gets the response of another request`);
    if (this.#run.written.has(request.id)) {
      this.#checkWritten(request, response);
      return;
    }
    assert.equal(fields.get('plant-id'), undefined, `${request.id} is confirmed but was not written`);
    if (error === undefined) {
      assert.equal(status, 200);
      const isWhole = request.wholeAtMs <= this.#now();
      assert.ok(isWhole && ['page', 'empty'].includes(request.expected), `${request.id} gets ${status}`);
      if (request.expected === 'page') assert.equal(body.length, PAGE.length);
    } else assert.ok(this.#isPossible(request, error), `${request.id} (${request.kind}) gets ${error}`);
  }

  #checkWritten(request: SentRequest, { status, error, fields, body }: Received): void {
    const result = this.#run.written.get(request.id)?.result;
    assert.ok(result !== undefined, `${request.id} gets a response before it is settled`);
    const expected = result.kind === 'confirmed' ? undefined : result.error;
    assert.equal(error, expected, `${request.id} gets another response than its plant`);
    if (error !== undefined) return;
    assert.equal(status, 200);
    assert.equal(fields.get('plant-id'), `${request.id}`, `${request.id} gets the response of another`);
    assert.equal(JSON.parse(body).name, request.name);
    count(this.#run.happened, `confirmed: ${request.kind}`);
  }

  /** Whether a request may get this error before its plant is queued. */
  #isPossible(request: SentRequest, error: ErrorName): boolean {
    const now = this.#now();
    const run = this.#run;
    const isWhole = request.wholeAtMs <= now;
    switch (error) {
      case 'tooSlow':
        count(run.happened, request.headersAtMs > now ? 'a late header section' : 'a late body');
        // The first bytes of a connection may come in the moment in which its time is over.
        if (this.#next === 0 && request.beganAtMs - this.#openedAtMs >= HEADERS_TIMEOUT_MS - SLACK_MS)
          return true;
        return (
          Math.min(request.headersAtMs, now) - request.beganAtMs >= HEADERS_TIMEOUT_MS - SLACK_MS ||
          Math.min(request.wholeAtMs, now) - request.beganAtMs >= REQUEST_TIMEOUT_MS - SLACK_MS
        );
      case 'badHttp':
        if (request.expected === error) return true;
        count(run.happened, 'the client ends within a request');
        return !isWhole && this.#clientEndedAtMs !== undefined;
      case 'headersTooLarge':
        // An invalid header section may have no end, and long bytes after it.
        return request.isInvalid;
      case 'shuttingDown':
        return now - run.stopAtMs >= SHUTDOWN_GRACE_MS - SLACK_MS;
      case 'storeUnavailable':
        return run.areTokensUnavailable && request.headersAtMs <= now && request.token !== undefined;
      case 'busy':
        count(run.happened, 'no memory for a long body');
        return run.isMemoryTight && request.bytes.length > 16 * 1024;
      case 'tooManyRequests':
        return run.isRateLimited && request.headersAtMs <= now;
      case 'tokenRejected':
        if (request.token === OTHER_TOKEN) return run.revokedAtMs <= now;
        return request.expected === error && request.headersAtMs <= now;
      default:
        return request.expected === error && (isWhole || request.isRejectedEarly || request.isInvalid);
    }
  }

  /** Whether the connection ends after this response, and only if it must. */
  #checkEnding(request: SentRequest, error: ErrorName | undefined, isLast: boolean): void {
    const now = this.#now();
    const isWhole = request.wholeAtMs <= now;
    const isFatal = error !== undefined && FATAL.includes(error);
    if (!isLast) {
      assert.ok(!request.isLast, `the connection does not end after ${request.id}, which asks for it`);
      assert.ok(
        isWhole && !isFatal && !request.isInvalid,
        `the connection goes on after ${request.id}, which is no whole request`,
      );
      const isNextBegun = this.#hasBegun(this.#next + 1);
      const isStopping = now - this.#run.stopAtMs >= SLACK_MS && this.#stuckUntilMs < this.#run.stopAtMs;
      assert.ok(isNextBegun || !isStopping, `the connection goes on after ${request.id} in the stop`);
      return;
    }
    if (request.isLast || request.isInvalid || isFatal || !isWhole) return;
    if (this.#stuckUntilMs >= request.wholeAtMs - SLACK_MS) return;
    const isEarly = error !== undefined && !this.#run.written.has(request.id);
    const bodyBytes = request.bytes.length - request.headersBytes;
    const isAtOnce = request.isBodyWithHead && bodyBytes <= SURELY_DISCARDED_BYTES;
    if (isEarly && !isAtOnce) {
      count(this.#run.happened, 'the end, as the rest of a rejected request comes late');
      return;
    }
    const isStopping = this.#run.stopAtMs <= now;
    assert.ok(isStopping, `the connection ends after ${request.id} (${request.kind}) without a cause`);
    count(this.#run.happened, 'the last response before the stop');
    // A header section of which a part was read late in the stop ends the connection, whatever follows.
    if (error !== 'shuttingDown') this.#checkNoneDropped(this.#next + 1, now);
  }

  /** Whether each request is served that had arrived some time before the end of the connection. */
  #checkNoneDropped(from: number, endMs: number): void {
    const dropped = this.#requests[from];
    // From then on, a connection reads once more.
    const isEnding = endMs >= this.#run.stopAtMs + SHUTDOWN_GRACE_MS + LAST_READS_MS;
    const servedUntilMs = isEnding ? this.#run.stopAtMs + SHUTDOWN_GRACE_MS : endMs;
    const isServed = dropped === undefined || dropped.wholeAtMs > servedUntilMs - SLACK_MS;
    assert.ok(isServed, `${dropped?.id} (${dropped?.kind}) arrived in time and gets no response`);
  }

  /** Checks the limits. Is called after each step. */
  check(): void {
    const socket = this.#socket;
    if (socket.fault !== undefined) throw new Error(socket.fault);
    if (this.#isClosed) return;
    if (socket.destroyed) {
      this.#isClosed = true;
      this.#checkClosed();
      return;
    }
    const now = this.#now();
    if (now - this.#run.stopAtMs > SHUTDOWN_MS + SLACK_MS) throw new Error('it is open after the stop');
    if (this.isReset) return;
    if (socket.writableLength > 0) {
      if (this.#stuckUntilMs < socket.busySinceMs)
        count(this.#run.happened, 'the client does not take everything at once');
      this.#stuckUntilMs = now;
      this.#checkUnread(socket.busySinceMs);
      this.#limit('untaken', socket.acceptedAtMs, UNTAKEN_MAX_MS + CHECKED_LATE_MS);
    } else if (socket.finishedAtMs !== undefined)
      this.#limit('linger', socket.finishedAtMs, LINGER_MS + CHECKED_LATE_MS);
    else if (this.#closeAtMs !== undefined)
      this.#limit('our end', Math.max(this.#closeAtMs, this.#stuckUntilMs), SLACK_MS);
    else this.#checkNext(now);
  }

  /** While the client does not take the responses, no request is read that comes after them. */
  #checkUnread(sinceMs: number): void {
    const last = this.#requests.findLast(({ id }) => this.#run.written.has(id));
    const isRead = last !== undefined && last.beganAtMs > sinceMs + SLACK_MS;
    assert.ok(!isRead, `${last?.id} is read, although earlier responses are not taken`);
  }

  /** Checks how long the next request takes. */
  #checkNext(now: number): void {
    const request = this.#requests[this.#next];
    const base = Math.max(this.#lastResponseAtMs, this.#stuckUntilMs);
    const endedAtMs = this.#clientEndedAtMs;
    if (request === undefined || request.beganAtMs > now) {
      // Empty lines are no request, so they make no difference.
      this.#limit('idle', base, KEEP_ALIVE_MS + 1_000 + CHECKED_LATE_MS);
      if (!this.#hasArrived) this.#limit('new', this.#openedAtMs, HEADERS_TIMEOUT_MS + CHECKED_LATE_MS);
      if (endedAtMs !== undefined) this.#limit('ended by its client', Math.max(base, endedAtMs), SLACK_MS);
      return;
    }
    const beganAtMs = Math.max(base, request.beganAtMs);
    if (request.wholeAtMs <= now) {
      const written = this.#run.written.get(request.id);
      if (written === undefined && this.#run.written.has(request.id)) return;
      this.#limit('response', Math.max(base, request.wholeAtMs, written?.atMs ?? 0), HANDLED_MAX_MS);
    } else if (endedAtMs !== undefined) this.#limit('cut', Math.max(beganAtMs, endedAtMs), HANDLED_MAX_MS);
    else if (request.headersAtMs > now)
      this.#limit('headers', beganAtMs, HEADERS_TIMEOUT_MS + CHECKED_LATE_MS);
    else this.#limit('body', beganAtMs, REQUEST_TIMEOUT_MS + CHECKED_LATE_MS);
  }

  #limit(what: string, sinceMs: number, ms: number): void {
    const passedMs = this.#now() - sinceMs;
    if (passedMs > ms) throw new Error(`limit "${what}": ${passedMs} ms, request ${this.#next}`);
  }

  /** The connection is closed. It must have a cause, and each request in time has its response. */
  #checkClosed(): void {
    const now = this.#now();
    const socket = this.#socket;
    const { finishedAtMs } = socket;
    const sinceStopMs = now - this.#run.stopAtMs;
    if (this.isReset) return;
    if (finishedAtMs !== undefined) {
      const isOver = socket.readableEnded || sinceStopMs >= SHUTDOWN_MS - SLACK_MS;
      const lingeredMs = now - finishedAtMs;
      assert.ok(isOver || lingeredMs >= LINGER_MS - SLACK_MS, `it lingers for ${lingeredMs} ms only`);
      if (!isOver) count(this.#run.happened, 'a lingering connection is closed');
      if (this.#closeAtMs === undefined) this.#checkSilentEnd(finishedAtMs);
    } else if (sinceStopMs >= SHUTDOWN_MS - SLACK_MS) {
      count(this.#run.happened, 'the deadline of the stop');
      assert.ok(this.#hasBegun(this.#next) || socket.stuckAtClose, 'the stop waits for an idle connection');
    } else if (socket.stuckAtClose) {
      const untakenMs = now - socket.pieceAtMs;
      assert.ok(untakenMs >= UNTAKEN_MAX_MS - SLACK_MS, `its client is cut after ${untakenMs} ms`);
      count(this.#run.happened, 'a client that takes nothing is cut');
    } else {
      const idleMs = now - Math.max(this.#stuckUntilMs, this.#lastResponseAtMs);
      assert.ok(idleMs >= KEEP_ALIVE_MS, `it is closed after ${idleMs} ms without a cause`);
      count(this.#run.happened, 'an idle connection is closed');
      this.#checkNoneDropped(this.#next, now);
    }
  }

  /** Our side has ended without a response that says so. */
  #checkSilentEnd(atMs: number): void {
    const graceEndMs = this.#run.stopAtMs + SHUTDOWN_GRACE_MS;
    const isStopping = atMs >= graceEndMs - SLACK_MS;
    assert.ok(isStopping || this.#clientEndedAtMs !== undefined, 'our side ends without a cause');
    // Then nothing more is read, though our side ends when the client has taken everything.
    const readUntilMs = this.#stuckUntilMs >= graceEndMs ? graceEndMs : atMs;
    this.#checkNoneDropped(this.#next, readUntilMs);
    const request = this.#requests[this.#next];
    const isBegun = request !== undefined && request.beganAtMs < readUntilMs - SLACK_MS;
    assert.ok(!isBegun, `${request?.id} has begun and gets no response`);
  }
}
