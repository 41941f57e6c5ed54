import { setTimeout as wait } from 'node:timers/promises';
import { TOKEN_REFRESH_INTERVAL_MS } from '../src/contract/limits.ts';

/**
 * Settles when a service that has just been started knows its first token by heart. A connection that sends its first
 * request before that is served by Node's HTTP server to its end, which is a measurement of its own.
 */
export function tokenIsKnown(): Promise<void> {
  return wait(2 * TOKEN_REFRESH_INTERVAL_MS);
}
