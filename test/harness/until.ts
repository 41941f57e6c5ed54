import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';

/** Far longer than any awaited event takes, also on a machine whose cores are all busy. */
export const EVENT_MS_MAX = 90_000;

/** Waits for an event, and fails after a timeout. */
export async function until(what: string, hasHappened: () => boolean | Promise<boolean>): Promise<void> {
  const since = performance.now();
  while (!(await hasHappened())) {
    assert.ok(performance.now() - since < EVENT_MS_MAX, `it did not happen: ${what}`);
    await wait(5);
  }
}
