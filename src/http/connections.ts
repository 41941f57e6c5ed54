import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { parserErrorName } from '../contract/errors.ts';
import {
  type Answer,
  type AnsweredRequest,
  answerText,
  CLOSING,
  errorAnswer,
  HELP_FIELDS,
  KEEPING,
} from './answer.ts';
import { DISCARD_MS } from './limits.ts';
import { PacedConnection } from './paced-connection.ts';
import type { PlantService } from './plant-service.ts';

/** A request and its response. */
export interface Exchange extends AnsweredRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Whether its refusal is decided, though perhaps not written yet. */
  isRefused: boolean;
}

/** Whether a request must not be carried out, since it has had its answer or is about to be refused. */
export function isOver({ response, isRefused }: Exchange): boolean {
  return response.headersSent || isRefused;
}

interface Connection {
  /** The last request that began to arrive, until it has its answer: with it goes its body. */
  latest: Exchange | undefined;
  /** Whether a request has ever come. */
  used: boolean;
  /** Something that is not a request arrived, or one came too slowly: nothing that follows is taken. */
  broken: boolean;
  /** Whether our side is closed, or about to be when all is written. */
  closing: boolean;
}

/** llhttp's code for what comes behind a request that said it was the last one. RFC 9112 section 9.6: not processed. */
const BEHIND_LAST_REQUEST = 'HPE_CLOSED_CONNECTION';

/**
 * Writes answers to the connections of Node's HTTP server so that none gets lost or is given twice.
 *
 * Given a whole socket, Node would tell of junk behind a request before that request's plant is durable. An answer written
 * then would be read as that of the request, while its plant is stored. {@link PacedConnection} lets Node see what follows
 * a request when that has its answer; so a connection has one unanswered request at most.
 */
export class Connections {
  readonly #service: PlantService;
  readonly #connections = new WeakMap<Socket, Connection>();
  /** Whether the service shuts down: each answer then says that it is the last one on its connection. */
  draining = false;

  constructor(service: PlantService) {
    this.#service = service;
  }

  /** @returns undefined behind a request that broke its connection: this one gets no answer */
  begin(request: IncomingMessage, response: ServerResponse): Exchange | undefined {
    const connection = this.#of(request.socket);
    if (connection.broken) return undefined;
    const exchange = { request, response, arrivedAt: performance.now(), bodyBytes: 0, isRefused: false };
    connection.latest = exchange;
    connection.used = true;
    response.on('close', () => {
      if (connection.latest === exchange && request.complete) connection.latest = undefined;
    });
    PacedConnection.of(request).began(request, response);
    return exchange;
  }

  /**
   * Answers a request, unless it was answered already. When the client has not sent all of it, the connection
   * cannot be used further: what still arrives is dropped for a while before it is closed, since closing at once
   * would reset it, and the client might never see the answer.
   */
  async answer(exchange: Exchange, answer: Answer<string | Uint8Array>): Promise<void> {
    const { request, response } = exchange;
    if (!request.complete) {
      // Nobody else reads it any more. What is there of it comes first: a whole request leaves its connection open.
      request.resume();
      await PacedConnection.of(request).hasGiven();
    }
    if (response.headersSent || response.destroyed) return;
    const connection = this.#of(request.socket);
    const { answered, crossOrigin, documentation } = this.#service;
    answered(answer, exchange, request.socket);
    const isLast = this.draining || connection.broken || !request.complete;
    // RFC 9112 section 9.6: behind an answer that closes the connection no further request is processed.
    if (isLast) connection.broken = true;
    const headers = [...answer.headers];
    if (documentation !== undefined) headers.push(...(HELP_FIELDS[answer.result] ?? []));
    if (crossOrigin !== undefined) headers.push(...crossOrigin.fieldsFor(request.rawHeaders));
    // Said outright: Node would close behind a refusal that comes without the 100 that its request expects, though all
    // of the request is there and further ones may have been taken.
    headers.push(...(isLast || !response.shouldKeepAlive ? CLOSING : KEEPING));
    response.writeHead(answer.status, headers);
    const body = request.method === 'HEAD' ? '' : answer.body;
    if (request.complete) {
      response.end(body);
      return;
    }
    if (body.length === 0) response.flushHeaders();
    else response.write(body);
    discardRest(request, () => response.end());
  }

  /** Answers a request that the parser let through but that is not valid HTTP; nothing behind it is taken. */
  refuse(exchange: Exchange): void {
    this.#of(exchange.request.socket).broken = true;
    void this.answer(exchange, errorAnswer('badHttp'));
  }

  /** Takes what Node's `clientError` event tells: the parser gave up on a connection, or a request took too long. */
  failed(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#of(socket);
    const { broken, latest } = connection;
    // What still comes is dropped.
    if (connection.closing) return;
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    if (error.code === BEHIND_LAST_REQUEST) {
      connection.broken = true;
      return;
    }
    const refusal = errorAnswer(parserErrorName(error.code));
    if (!broken && latest !== undefined && !latest.request.complete) {
      // The fault is in the body of this request, so this is its answer.
      connection.broken = true;
      latest.isRefused = true;
      void this.answer(latest, refusal);
    } else {
      this.refuseRest(socket, refusal);
    }
  }

  /** Answers what comes behind the last whole request, and closes the connection. */
  refuseRest(socket: Socket, refusal: Answer): void {
    if (!this.#of(socket).broken) this.#closeInStages(socket, refusal);
  }

  /**
   * Takes Node's `timeout` event: nothing has moved on a connection for a while. That ends one whose client reads no
   * answers, or that was kept open for another request. A request that is still arriving has limits of its own, and
   * one that waits for the disk may wait.
   */
  stalled(socket: Socket): void {
    const { latest, used } = this.#of(socket);
    if (!used) return;
    if (latest === undefined || socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(socket.timeout ?? 0);
  }

  /** Closes a connection where Node would, behind the answer that is its last as far as Node knows. */
  close(socket: Socket): void {
    const { latest } = this.#of(socket);
    // What came of a request that was not whole has been read and dropped for a while already.
    if (latest !== undefined && !latest.request.complete) Socket.prototype.destroySoon.call(socket);
    else this.#closeInStages(socket);
  }

  /**
   * Closes our side, behind an answer if there is one, and drops what still comes until the client has closed its own,
   * or for a while. RFC 9112 section 9.6: closing at once would reset a connection on which the client still sends, and
   * it might never see its last answers.
   */
  #closeInStages(socket: Socket, answer?: Answer): void {
    const connection = this.#of(socket);
    if (connection.closing || !socket.writable) return;
    connection.closing = true;
    connection.broken = true;
    if (answer === undefined) {
      socket.end();
    } else {
      this.#service.answered(answer, undefined, socket);
      socket.end(answerText(answer, true, this.#service.documentation !== undefined));
    }
    const timer = setTimeout(() => socket.destroy(), DISCARD_MS);
    socket.on('close', () => clearTimeout(timer));
  }

  #of(socket: Socket): Connection {
    const known = this.#connections.get(socket);
    if (known !== undefined) return known;
    const connection = { latest: undefined, used: false, broken: false, closing: false };
    this.#connections.set(socket, connection);
    return connection;
  }
}

/** Reads on and forgets, to the end of the request or of the client's side, or for at most a while. */
function discardRest(request: IncomingMessage, then: () => void): void {
  const { socket } = request;
  if (socket.readableEnded) {
    then();
    return;
  }
  const finish = (): void => {
    clearTimeout(timer);
    socket.off('end', finish);
    request.off('close', finish);
    then();
  };
  const timer = setTimeout(finish, DISCARD_MS);
  socket.on('end', finish);
  request.on('close', finish);
  request.resume();
}
