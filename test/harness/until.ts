import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';

/** Far longer than any awaited event takes, also on a machine whose cores are all busy. */
export const EVENT_MAX_MS = 90_000;

const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 200;

/** The longest delay by a pause, as a share of the time waited so far. */
const DELAY_MAX = 0.05;

/**
 * Waits for an event, and fails after a timeout. The pauses between the checks take three times as
 * long as the checks, so that what is awaited gets the CPU time. They grow with the time waited.
 */
export async function until(what: string, hasHappened: () => boolean | Promise<boolean>): Promise<void> {
  const since = performance.now();
  for (;;) {
    const checkedAt = performance.now();
    if (await hasHappened()) return;
    const now = performance.now();
    assert.ok(now - since < EVENT_MAX_MS, `it did not happen: ${what}`);
    const pauseMs = Math.max(PAUSE_MIN_MS, 3 * (now - checkedAt), DELAY_MAX * (now - since));
    await wait(Math.min(pauseMs, PAUSE_MAX_MS));
  }
}
