import type { Socket } from 'node:net';
import { TURN_FIRST_REQUESTS_MAX, TURN_FURTHER_REQUESTS_MAX } from '../contract/limits.ts';
import type { CreatePlant } from './create-plant.ts';
import { OrdinaryConnection, type OrdinaryService } from './ordinary-connection.ts';
import type { OrdinaryHeads } from './ordinary-head.ts';
import { RequestTurns } from './request-turns.ts';

/** What a connection needs of the server around it. */
type EnclosingServer = Pick<
  OrdinaryService,
  'heads' | 'hasDocs' | 'serveHttp' | 'refuseSlow' | 'failed' | 'answered'
>;

/** All connections that are served as {@link OrdinaryConnection}s. */
export class OrdinaryConnections implements OrdinaryService {
  readonly createPlant: CreatePlant;
  readonly heads: OrdinaryHeads;
  readonly hasDocs: boolean;
  readonly firstTurns = new RequestTurns(TURN_FIRST_REQUESTS_MAX);
  readonly furtherTurns = new RequestTurns(TURN_FURTHER_REQUESTS_MAX);
  readonly serveHttp: OrdinaryService['serveHttp'];
  readonly refuseSlow: OrdinaryService['refuseSlow'];
  readonly failed: OrdinaryService['failed'];
  readonly answered: OrdinaryService['answered'];
  readonly #open = new Set<OrdinaryConnection>();
  #draining = false;

  constructor(
    createPlant: CreatePlant,
    { heads, hasDocs, serveHttp, refuseSlow, failed, answered }: EnclosingServer,
  ) {
    this.createPlant = createPlant;
    this.heads = heads;
    this.hasDocs = hasDocs;
    this.serveHttp = serveHttp;
    this.refuseSlow = refuseSlow;
    this.failed = failed;
    this.answered = answered;
  }

  /** Takes a new connection. */
  take(socket: Socket): void {
    this.#open.add(new OrdinaryConnection(socket, this));
  }

  left(connection: OrdinaryConnection): void {
    this.#open.delete(connection);
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** From now on each answer is the last one on its connection, and requests that come are the HTTP server's. */
  drain(): void {
    this.#draining = true;
    for (const connection of this.#open) connection.drain();
  }

  /** Cuts the connections that await no answer. */
  closeIdle(): void {
    for (const connection of this.#open) connection.closeIfIdle();
  }

  /** Cuts all connections. */
  closeAll(): void {
    for (const connection of this.#open) connection.close();
  }
}
