import { type Clock, SYSTEM_CLOCK } from '../../../core/clock.ts';

/**
 * Awaits work for a limited time. The timeouts of pg have errors that only their text tells apart,
 * and the one of a query is missing in its types.
 *
 * @param onTimeout makes the error after the timeout; the work goes on, so its caller must end it
 */
export async function withinTimeout<T>(
  work: Promise<T>,
  timeoutMs: number,
  onTimeout: () => Error,
  clock: Clock = SYSTEM_CLOCK,
): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const timer = clock.setTimer(() => reject(onTimeout()), timeoutMs);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    timer[Symbol.dispose]();
  }
}
