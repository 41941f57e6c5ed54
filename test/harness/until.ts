import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';

/** Far beyond what anything tested here takes: only what would never happen fails by it. */
const TIMER_MS_MAX = 30_000;

/** Waits for what must happen, and fails when it does not, so that a test ends either way. */
export async function until(what: string, hasHappened: () => boolean | Promise<boolean>): Promise<void> {
  const since = performance.now();
  while (!(await hasHappened())) {
    assert.ok(performance.now() - since < TIMER_MS_MAX, `it did not happen: ${what}`);
    await wait(5);
  }
}
