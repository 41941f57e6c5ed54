import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** An answer as it stood on the wire. */
export interface RawResponse {
  status: number;
  /** Names in lower case. A name that came twice is an error of the server and throws. */
  headers: Map<string, string>;
  body: string;
}

/** How a connection ended: the server closed its side in order, or tore the connection down. */
export type Ending = 'closed' | 'reset';

const HEADERS_END = '\r\n\r\n';

/** A TCP connection on which a test writes what it likes, and reads answers one after the other. */
export class RawConnection {
  readonly socket: Socket;
  /** Settles when the server has closed its side. */
  readonly ended: Promise<Ending>;
  #received = Buffer.alloc(0);
  #isOver = false;
  #arrived = Promise.withResolvers<void>();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
    this.ended = new Promise(resolve => {
      socket.on('end', () => resolve('closed'));
      // What ends it tells nothing new once the server has closed its side.
      socket.on('error', () => resolve('reset'));
      socket.on('close', () => resolve('reset'));
    });
    void this.ended.then(() => {
      this.#isOver = true;
      this.#wake();
    });
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Closes our side, as a client does that has nothing more to send. */
  finish(): void {
    this.socket.end();
  }

  /**
   * Reads the next answer, a 100 (Continue) included.
   *
   * @param hasBody false for an answer to HEAD
   * @throws when the connection ends before the answer is whole
   */
  async response(hasBody = true): Promise<RawResponse> {
    for (;;) {
      const response = this.#take(hasBody);
      if (response !== undefined) return response;
      if (this.#isOver) throw new Error(`${await this.ended} after: ${JSON.stringify(this.unread)}`);
      await this.#arrived.promise;
    }
  }

  /** What has arrived and was not read as an answer. */
  get unread(): string {
    return this.#received.toString();
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  #wake(): void {
    this.#arrived.resolve();
    this.#arrived = Promise.withResolvers();
  }

  #take(hasBody: boolean): RawResponse | undefined {
    const headLength = this.#received.indexOf(HEADERS_END);
    if (headLength < 0) return undefined;
    const [statusLine = '', ...lines] = this.#received.toString('latin1', 0, headLength).split('\r\n');
    const status = Number(/^HTTP\/1\.1 ([0-9]{3}) [\x20-\x7e]+$/.exec(statusLine)?.[1]);
    if (Number.isNaN(status)) throw new Error(`not a status line: ${statusLine}`);
    const headers = new Map<string, string>();
    for (const line of lines) {
      const [, name = '', value = ''] = /^([\w-]+): (.*)$/.exec(line) ?? [];
      if (name === '' || headers.has(name.toLowerCase())) throw new Error(`not a field, or twice: ${line}`);
      headers.set(name.toLowerCase(), value);
    }
    const bodyStart = headLength + HEADERS_END.length;
    const bodyLength = hasBody && status !== 100 ? Number(headers.get('content-length')) : 0;
    if (Number.isNaN(bodyLength)) throw new Error(`an answer without Content-Length: ${statusLine}`);
    if (this.#received.length < bodyStart + bodyLength) return undefined;
    const body = this.#received.toString('utf8', bodyStart, bodyStart + bodyLength);
    this.#received = this.#received.subarray(bodyStart + bodyLength);
    return { status, headers, body };
  }
}

/** What differs from a valid `POST /plants`; null takes a field out, a list sends it so many times. */
export interface RequestParts {
  method?: string;
  target?: string;
  version?: string;
  headers?: Record<string, string | string[] | null>;
  body?: string | Uint8Array;
}

/**
 * Writes a request: a valid `POST /plants` but for what is given.
 *
 * @param token for the Authorization field
 */
export function requestBytes(token: string, parts: RequestParts = {}): Buffer {
  const { method = 'POST', target = '/plants', version = '1.1' } = parts;
  const body = Buffer.from(parts.body ?? '{"id":1,"name":"A"}');
  const headers = {
    Host: 'plants.example',
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/json',
    'Content-Length': String(body.length),
    ...parts.headers,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (value === null ? [] : [value].flat()).map(each => `${name}: ${each}\r\n`),
  );
  return Buffer.concat([Buffer.from(`${method} ${target} HTTP/${version}\r\n${lines.join('')}\r\n`), body]);
}

/** A body in two chunks, or fewer where it is that short, RFC 9112 section 7.1, instead of one of a known length. */
export function chunked(body: string | Uint8Array): RequestParts {
  const bytes = Buffer.from(body);
  const half = bytes.length >> 1;
  // An empty chunk is the last one.
  const parts = [bytes.subarray(0, half), bytes.subarray(half)].filter(part => part.length > 0);
  const chunks = [...parts, Buffer.alloc(0)];
  return {
    headers: { 'Content-Length': null, 'Transfer-Encoding': 'chunked' },
    body: Buffer.concat(
      chunks.flatMap(chunk => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]),
    ),
  };
}

/** Sends a request on a connection of its own, a valid `POST /plants` but for what is given. */
export async function ask(port: number, token: string, parts: RequestParts = {}): Promise<RawResponse> {
  using connection = await RawConnection.open(port);
  connection.write(requestBytes(token, parts));
  return await connection.response(parts.method !== 'HEAD' && parts.method !== 'OPTIONS');
}
