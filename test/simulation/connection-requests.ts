import type { ErrorName } from '../../src/core/contract/errors.ts';
import { makeToken } from '../../src/core/tokens/token.ts';
import type { Scheduler } from './scheduler.ts';

export const VALID_TOKEN = makeToken();
/** It is revoked in some runs. */
export const OTHER_TOKEN = makeToken();
const UNKNOWN_TOKEN = makeToken();

/** Largest body of the simulated service. */
export const SIMULATED_BODY_MAX_BYTES = 100_000;
export const PAGE = 'page '.repeat(60_000);

/** A plant that no client sends: only a service that takes a body for a request stores it. */
const SMUGGLED_BODY = '{"id":666,"name":"smuggled"}';
const SMUGGLED = `${createHeaders(VALID_TOKEN, '', `Content-Length: ${SMUGGLED_BODY.length}`)}${SMUGGLED_BODY}`;

/** A request, and when its bytes have arrived. */
export interface SentRequest {
  kind: string;
  bytes: Buffer;
  headersBytes: number;
  /** What its response must be, if no other error comes first. */
  expected: ErrorName | 'plant' | 'page' | 'empty';
  id: bigint;
  name: string;
  token: string | undefined;
  origin: string | undefined;
  /** Whether its client asks for the end of the connection. */
  isLast: boolean;
  /** Whether its bytes are no valid request. */
  isInvalid: boolean;
  /** Whether its response comes without its body. */
  isRejectedEarly: boolean;
  expectsContinue: boolean;
  beganAtMs: number;
  headersAtMs: number;
  wholeAtMs: number;
  /** Whether its body arrived together with the end of its header section. */
  isBodyWithHead: boolean;
  /** When its connection was closed. */
  closedAtMs: number;
  /** Plants of its connection that are not settled. */
  inFlight: { plants: number; bytes: number };
}

function createHeaders(token: string, fields: string, framing: string): string {
  return `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n${fields}${framing}\r\n\r\n`;
}

function sent(headers: string, body: Buffer | string, rest: Partial<SentRequest>): SentRequest {
  const bytes = Buffer.concat([Buffer.from(headers, 'latin1'), Buffer.from(body)]);
  return {
    kind: '',
    bytes,
    headersBytes: headers.length,
    expected: 'badHttp',
    id: 0n,
    name: '',
    token: undefined,
    origin: undefined,
    isLast: false,
    isInvalid: false,
    isRejectedEarly: false,
    expectsContinue: false,
    beganAtMs: Infinity,
    headersAtMs: Infinity,
    wholeAtMs: Infinity,
    isBodyWithHead: false,
    closedAtMs: Infinity,
    inFlight: { plants: 0, bytes: 0 },
    ...rest,
  };
}

const INVALID: readonly [text: string, expected: ErrorName][] = [
  ['POST  /plants HTTP/1.1\r\nHost: a\r\n\r\n', 'badHttp'],
  ['POST /plants RTSP/1.0\r\n\r\n', 'badHttp'],
  ['GET / HTTP/1.1\r\nHost : a\r\n\r\n', 'badHttp'],
  ['GET / HTTP/1.1\r\n\r\n', 'badHttp'],
  ['POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n', 'badHttp'],
  ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'badHttp'],
  [`GET / HTTP/1.1\r\nHost: a\r\nA: ${'a'.repeat(17_000)}\r\n\r\n`, 'headersTooLarge'],
];

/** Draws the requests of all clients. Each has another id and name, and perhaps another origin. */
export class Requests {
  readonly #scheduler: Scheduler;
  readonly byId = new Map<bigint, SentRequest>();
  /** All origins so far. */
  readonly origins: string[] = [];

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Many creates that are plain, one after the other. */
  pipeline(length: number, paddingBytes: number): SentRequest[] {
    return Array.from({ length }, () => this.#create('plain', '', paddingBytes, VALID_TOKEN));
  }

  draw(): SentRequest {
    const scheduler = this.#scheduler;
    const fields = this.#fields();
    const token = scheduler.happens(15) ? OTHER_TOKEN : VALID_TOKEN;
    switch (scheduler.random(16)) {
      case 0:
        return this.#chunked(fields, token, 1, scheduler.random(300));
      case 1:
        return this.#chunked(fields, token, 2 + scheduler.random(20), scheduler.random(3_000));
      case 2:
        return this.#chunked(fields, token, 1 + scheduler.random(20), 10_000 + scheduler.random(30_000));
      case 3:
      case 4:
        return this.#create('long', fields, 17_000 + scheduler.random(scheduler.pick(8_000, 60_000)), token);
      case 5: {
        const padding = scheduler.pick(10, 100, 30_000);
        return this.#create('continue', `${fields}Expect: 100-continue\r\n`, padding, token);
      }
      case 6: {
        const [text, expected] = scheduler.pick(...INVALID);
        return sent(text, '', { kind: 'invalid', expected, isInvalid: true });
      }
      case 7:
        return this.#get(fields);
      case 8:
      case 9:
        return this.#rejectedEarly(fields);
      case 10: {
        const length = scheduler.pick(10, 20_000);
        const headers = createHeaders(VALID_TOKEN, fields, `Content-Length: ${length}`);
        return this.#sent(headers, '['.repeat(length), { kind: 'invalid JSON', expected: 'notJson' });
      }
      case 11: {
        const headers = createHeaders(VALID_TOKEN, fields, 'Transfer-Encoding: chunked');
        const body = `3\r\nabc\r\n${scheduler.pick('x', '2\n', '2\r\nabc')}\r\n`;
        return this.#sent(headers, body, { kind: 'invalid chunk', isInvalid: true });
      }
      default:
        return this.#create('plain', fields, scheduler.pick(0, 50, 2_000), token);
    }
  }

  #fields(): string {
    const { origins } = this;
    const scheduler = this.#scheduler;
    let fields = '';
    if (scheduler.happens(40)) {
      origins.push(`http://o${origins.length}`);
      fields += `Origin: ${origins.at(-1)}\r\n`;
    }
    if (scheduler.happens(4)) fields += 'Connection: close\r\n';
    // A header section that is too long to be remembered.
    if (scheduler.happens(4)) fields += `A: ${'a'.repeat(5_000)}\r\n`;
    return fields;
  }

  #plant(paddingBytes: number): { id: bigint; name: string; body: string } {
    const id = 1_000_000n + BigInt(this.byId.size);
    const name = `n${id}${'+'.repeat(paddingBytes)}`;
    return { id, name, body: `{"id":${id},"name":"${name}"}` };
  }

  #create(kind: string, fields: string, paddingBytes: number, token: string): SentRequest {
    const { body, ...plant } = this.#plant(paddingBytes);
    const headers = createHeaders(token, fields, `Content-Length: ${body.length}`);
    return this.#sent(headers, body, { kind, expected: 'plant', ...plant });
  }

  #chunked(fields: string, token: string, chunks: number, paddingBytes: number): SentRequest {
    const scheduler = this.#scheduler;
    const { body, ...plant } = this.#plant(paddingBytes);
    const ends = Array.from({ length: chunks - 1 }, () => scheduler.random(body.length));
    const cuts = [...new Set([0, ...ends, body.length])].sort((one, other) => one - other);
    let text = '';
    for (let index = 1; index < cuts.length; index++) {
      const chunk = body.slice(cuts[index - 1], cuts[index]);
      const extension = chunks > 1 && scheduler.happens(10) ? ';a="b;"' : '';
      text += `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n`;
    }
    text += `0\r\n${chunks > 1 && scheduler.happens(20) ? 'A: b\r\n' : ''}\r\n`;
    const headers = createHeaders(token, fields, 'Transfer-Encoding: chunked');
    const kind = chunks === 1 ? 'one chunk' : 'chunks';
    return this.#sent(headers, text, { kind, expected: 'plant', ...plant });
  }

  #get(fields: string): SentRequest {
    const [line, expected] = this.#scheduler.pick<[string, SentRequest['expected']]>(
      ['GET /none HTTP/1.1', 'noSuchPath'],
      ['GET /none HTTP/1.0', 'noSuchPath'],
      ['DELETE /plants HTTP/1.1', 'methodNotAllowed'],
      ['GET /docs HTTP/1.1', 'page'],
      ['HEAD /docs HTTP/1.1', 'empty'],
      ['POST /docs HTTP/1.1', 'methodNotAllowed'],
    );
    return this.#sent(`${line}\r\nHost: a\r\n${fields}\r\n`, '', { kind: line, expected });
  }

  /** With a body that looks like a request, which must be discarded. */
  #rejectedEarly(fields: string): SentRequest {
    const scheduler = this.#scheduler;
    const body = SMUGGLED.repeat(scheduler.pick(1, 5, 100));
    const isChunked = scheduler.happens(30);
    const isTooLarge = !isChunked && scheduler.happens(20);
    const token = isTooLarge ? VALID_TOKEN : scheduler.pick(UNKNOWN_TOKEN, 'plant_x', '');
    const repeated = isTooLarge
      ? SMUGGLED.repeat(Math.ceil(SIMULATED_BODY_MAX_BYTES / SMUGGLED.length))
      : body;
    const framed = isChunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : repeated;
    const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${framed.length}`;
    const expected = isTooLarge ? 'bodyTooLarge' : token === '' ? 'noCredential' : 'tokenRejected';
    const headers = createHeaders(token, fields, framing);
    return this.#sent(headers, framed, { kind: 'rejected early', expected, isRejectedEarly: true });
  }

  #sent(headers: string, body: string, rest: Partial<SentRequest>): SentRequest {
    const { id, name } = this.#plant(0);
    const request = sent(headers, body, {
      id,
      name,
      ...rest,
      token: /Bearer (\S+)/.exec(headers)?.[1],
      origin: /\r\nOrigin: (\S+)/.exec(headers)?.[1],
      isLast: /Connection: close|HTTP\/1\.0/.test(headers),
      expectsContinue: headers.includes('Expect:'),
    });
    this.byId.set(request.id, request);
    return request;
  }
}
