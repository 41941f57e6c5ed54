import { setTimeout as wait } from 'node:timers/promises';
import type { LoggingClient } from '../test/harness/logging-client.ts';

/** Between an answer and the next plant. */
const SEND_INTERVAL_MS = 5;

/**
 * Makes a holder of a good token, who sends a plant, waits for its answer and a moment, and so on.
 *
 * @param lastId the plants have the ids behind it
 * @returns sends for so many ms, and says how long each answer took, in ms
 */
export function steadySender(
  client: LoggingClient,
  signal: AbortSignal,
  lastId: bigint,
): (forMs: number) => Promise<number[]> {
  let id = lastId;
  return async forMs => {
    const untilMs = performance.now() + forMs;
    const tookMs: number[] = [];
    while (performance.now() < untilMs && !signal.aborted) {
      const { sentAt, answeredAt } = await client.send({ id: ++id, name: 'held' });
      tookMs.push(answeredAt - sentAt);
      await wait(SEND_INTERVAL_MS);
    }
    return tookMs;
  };
}
