import { RETRY_WAIT_MIN_MS } from './limits.ts';

/**
 * How long to wait before a plant is sent again, in ms.
 *
 * @param tries how often it was sent; the wait doubles from one to the next
 * @param maxMs what it doubles up to
 * @param leastMs what the answer asked for, also beyond that
 */
export function retryWaitMs(tries: number, maxMs: number, leastMs: number): number {
  const doubledMs = Math.min(maxMs, RETRY_WAIT_MIN_MS * 2 ** (tries - 1));
  // A little later each, or all that were refused together would come back together.
  return Math.max(doubledMs, leastMs) * (1 + Math.random() / 4);
}
