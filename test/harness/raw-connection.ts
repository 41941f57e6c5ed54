import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface RawResponse {
  status: number;
  /** Names are in lower case. A repeated name is an error of the server and throws. */
  headers: Map<string, string>;
  body: string;
}

/** How a connection ended: the server closed its side, or reset the connection. */
export type Ending = 'closed' | 'reset';

const HEADERS_END = '\r\n\r\n';

/** A TCP connection on which a test writes any bytes, and reads responses one after the other. */
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
      // After the server has closed its side, these resolve nothing.
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

  finish(): void {
    this.socket.end();
  }

  /** Reads the next response; 100 (Continue) is one. @throws if the connection ends before */
  async response(hasBody = true): Promise<RawResponse> {
    for (;;) {
      const response = this.#take(hasBody);
      if (response !== undefined) return response;
      if (this.#isOver) throw new Error(`${await this.ended} after: ${JSON.stringify(this.unread)}`);
      await this.#arrived.promise;
    }
  }

  /** The bytes that arrived after the last response that was read. */
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
    const headersLength = this.#received.indexOf(HEADERS_END);
    if (headersLength < 0) return undefined;
    const [statusLine = '', ...lines] = this.#received.toString('latin1', 0, headersLength).split('\r\n');
    const status = Number(/^HTTP\/1\.1 ([0-9]{3}) [\x20-\x7e]+$/.exec(statusLine)?.[1]);
    if (Number.isNaN(status)) throw new Error(`not a status line: ${statusLine}`);
    const headers = new Map<string, string>();
    for (const line of lines) {
      const [, name = '', value = ''] = /^([\w-]+): (.*)$/.exec(line) ?? [];
      if (name === '' || headers.has(name.toLowerCase()))
        throw new Error(`not a header, or a repeated one: ${line}`);
      headers.set(name.toLowerCase(), value);
    }
    const bodyStart = headersLength + HEADERS_END.length;
    const bodyLength = hasBody && status !== 100 ? Number(headers.get('content-length')) : 0;
    if (Number.isNaN(bodyLength)) throw new Error(`a response without Content-Length: ${statusLine}`);
    if (this.#received.length < bodyStart + bodyLength) return undefined;
    const body = this.#received.toString('utf8', bodyStart, bodyStart + bodyLength);
    this.#received = this.#received.subarray(bodyStart + bodyLength);
    return { status, headers, body };
  }
}

/** Differences from a valid `POST /plants`. Null removes a header; an array repeats it. */
export interface RequestParts {
  method?: string;
  target?: string;
  version?: string;
  headers?: Record<string, string | string[] | null>;
  body?: string | Uint8Array;
}

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

/** A body in one chunk instead of one with Content-Length, RFC 9112 section 7.1. */
export function chunked(body: string): RequestParts {
  const size = Buffer.byteLength(body).toString(16);
  return {
    headers: { 'Content-Length': null, 'Transfer-Encoding': 'chunked' },
    body: body === '' ? '0\r\n\r\n' : `${size}\r\n${body}\r\n0\r\n\r\n`,
  };
}

/** Sends a valid `POST /plants`, with the given differences, on a new connection. */
export async function ask(port: number, token: string, parts: RequestParts = {}): Promise<RawResponse> {
  using connection = await RawConnection.open(port);
  connection.write(requestBytes(token, parts));
  return await connection.response(parts.method !== 'HEAD' && parts.method !== 'OPTIONS');
}
