import { RETRY_AFTER_MAX_MS, RETRY_WAIT_MAX_MS, RETRY_WAIT_MIN_MS } from './limits.ts';

/** Reads the header Retry-After (RFC 9110 section 10.2.3): seconds, or a date. @returns ms from now; 0 without one */
export function readRetryAfterMs(text: string | undefined): number {
  if (text === undefined) return 0;
  const ms = /^[0-9]+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(ms, 0) : 0;
}

/**
 * How long to wait before a plant is sent again, in ms.
 *
 * @param tries how often it was sent; the wait doubles from one to the next
 * @param askedMs what the answer asked for
 */
export function retryWaitMs(tries: number, askedMs: number): number {
  const doubledMs = Math.min(RETRY_WAIT_MAX_MS, RETRY_WAIT_MIN_MS * 2 ** (tries - 1));
  // A little later each, or all that were refused together would come back together.
  return Math.max(doubledMs, Math.min(askedMs, RETRY_AFTER_MAX_MS)) * (1 + Math.random() / 4);
}
