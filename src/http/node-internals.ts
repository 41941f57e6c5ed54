import type { Server as HttpServer, IncomingMessage } from 'node:http';
import { Server as NetServer, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { createServer, Server } from './node-http.ts';

/*
 * Everything here depends on undocumented parts of Node's HTTP server. Each function has its reason
 * and the name of that part, in `lib/_http_server.js` of Node 26 unless another file is named. Each
 * start calls `checkNodeInternals`.
 */

/** `HTTPParser` in `src/node_http_parser.cc`. */
interface NodeParser {
  readonly incoming: IncomingMessage | null;
  execute(bytes: Buffer): number | Error;
}

/**
 * Takes the listener that gives a connection its parser (`connectionListener`). A connection on the
 * fast path has no parser, and gets one when it leaves the fast path.
 */
export function takeConnectionListener(server: HttpServer): (socket: Socket) => void {
  const listeners = server.listeners('connection');
  server.removeAllListeners('connection');
  return socket => {
    for (const listener of listeners) listener.call(server, socket);
  };
}

/**
 * Lets a client close its sending side after its last request and still wait for the response
 * (`httpAllowHalfOpen` in `socketOnEnd`).
 */
export function allowHalfOpen(server: HttpServer): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}

/** Keeps our side open when the client ends its side, which `socketOnEnd` may close at once. */
export function keepOpenAfterEnd(socket: Socket): void {
  socket.removeAllListeners('end');
}

/** Replaces the immediate close after a response with `Connection: close` (`resOnFinish`). */
export function onLastResponse(socket: Socket, close: () => void): void {
  socket.destroySoon = close;
}

/** Stops accepting connections. The server's own `close` would also stop its request timeouts. */
export function stopAccepting(server: NetServer): Promise<void> {
  return new Promise(resolve => NetServer.prototype.close.call(server, () => resolve()));
}

/**
 * Closes the connections that Node regards as idle, since their parsers have no part of a request,
 * except for those in `busy` (`closeIdleConnections`). Only the parser knows such a part.
 */
export function closeIdleExcept(server: HttpServer, busy: readonly Socket[]): void {
  for (const socket of busy) socket.destroy = () => socket;
  Server.prototype.closeIdleConnections.call(server);
  for (const socket of busy) Reflect.deleteProperty(socket, 'destroy');
}

/**
 * The parser of a connection. Its bytes go to `parse` first (`socketOnData` calls `execute`). So
 * the caller decides how far Node parses ahead of the responses.
 */
export class TakenParser {
  readonly #parser: NodeParser;
  readonly #execute: NodeParser['execute'];
  #isReleased = false;

  constructor(socket: Socket, parse: (received: Buffer) => number | Error) {
    const { parser } = socket as Socket & { parser: NodeParser };
    this.#parser = parser;
    this.#execute = Object.getPrototypeOf(parser).execute;
    // Without a `data` listener, the parser would read past the socket (`consume`).
    socket.on('data', () => {});
    parser.execute = parse;
    socket.on('close', () => this.release());
  }

  /** CONNECT stops the parser. It is rejected, and Node reuses the parser. */
  get isConnect(): boolean {
    return this.#parser.incoming?.method === 'CONNECT';
  }

  /** @returns how many bytes were parsed, or the error in them */
  execute(bytes: Buffer): number | Error {
    return this.#execute.call(this.#parser, bytes);
  }

  /** Restores the parser, only once: another connection may use it afterwards (`freeParser`). */
  release(): void {
    if (!this.#isReleased) Reflect.deleteProperty(this.#parser, 'execute');
    this.#isReleased = true;
  }
}

/** A socket with the private fields of its option `onread`. `_handle` is null if it is destroyed. */
interface OpenSocket {
  _handle: { useUserBuffer(buffer: Buffer): void } | null;
  [field: symbol]: unknown;
}

/** These fields (`kBuffer` and `kBufferCb` in `lib/net.js`). */
const [BUFFER, CALLBACK] = ['kBuffer', 'kBufferCb'].map(name =>
  Object.getOwnPropertySymbols(new Socket()).find(({ description }) => description === name),
) as [symbol, symbol];

/**
 * Makes an accepted socket read into a buffer, as `onread` does for other sockets. Otherwise each
 * read would allocate a buffer and pass through a stream. A later call only replaces `onRead`.
 *
 * @param onRead gets the number of bytes in the buffer. If it returns false, reading stops
 */
export function readInto(socket: Socket, buffer: Buffer, onRead: (length: number) => unknown): void {
  const open = socket as unknown as OpenSocket;
  open[CALLBACK] = onRead;
  if (open[BUFFER] === buffer) return;
  open[BUFFER] = buffer;
  open._handle?.useUserBuffer(buffer);
}

/**
 * Makes a socket of {@link readInto} push what it reads into its stream, as other sockets do. With
 * the buffer, its own methods `pause`, `read` and `resume` ignore how much the stream holds.
 */
export function readIntoStream(socket: Socket, buffer: Buffer): void {
  readInto(socket, buffer, length => socket.push(Buffer.from(buffer.subarray(0, length))));
  // The stream still waits for its first `push`, so it would not start to read by itself.
  socket.read(0);
  const { pause, read, resume } = Duplex.prototype;
  Object.assign(socket, { pause, read, resume });
}

/** @throws {Error} if Node lacks a part that this file uses, except `useUserBuffer` of a connection */
export function checkNodeInternals(): void {
  const server = createServer();
  const socket = new Socket();
  const received: Buffer[] = [];
  const bytes = Buffer.from('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
  try {
    const used = { httpAllowHalfOpen: server, destroySoon: socket, closeIdleConnections: Server.prototype };
    for (const [name, owner] of Object.entries(used)) if (!(name in owner)) throw new Error(`no ${name}`);
    takeConnectionListener(server)(socket);
    const parser = new TakenParser(socket, chunk => received.push(chunk) && chunk.length);
    socket.emit('data', bytes);
    if (received[0] !== bytes) throw new Error('no execute');
    parser.execute(bytes);
    if (!parser.isConnect) throw new Error('no incoming request');
    if (!BUFFER || !CALLBACK) throw new Error('no onread');
  } catch (cause) {
    throw new Error(
      `the HTTP server of Node ${process.version} has changed, so the service cannot run on it; use Node 26`,
      { cause },
    );
  } finally {
    socket.destroy();
  }
}
