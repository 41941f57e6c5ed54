import { SERVER_TURN_MS } from '../contract/limits.ts';
import { TurnQueue } from './turn-queue.ts';

/**
 * Shares the time that Node's HTTP server gets of each turn of the event loop among its connections, in order. However much
 * comes on however many of them, ordinary requests and commits are heard of after so long.
 */
export class ServerTurns {
  #untilMs = 0;
  readonly #queue = new TurnQueue(
    () => {
      this.#untilMs = performance.now() + SERVER_TURN_MS;
    },
    () => performance.now() < this.#untilMs,
  );

  /** Calls back in a later turn, behind all that wait already. */
  wait(goOn: () => void): void {
    this.#queue.wait(goOn);
  }
}
