import { StoreInternalError, StoreUnavailable } from '../../core/commit/store-errors.ts';

/** Limit for a repeated log line: a burst of `burstLines`, then one line per interval. */
export const LOG_RATE = { burstLines: 20, intervalMs: 10_000 };

/** A logger, such as a pino logger. Each call writes one line. */
export interface ServiceLog {
  info(message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/** A token bucket for log lines. @returns a function that takes one line, if there is any */
function lineBucket({ burstLines, intervalMs }: typeof LOG_RATE): () => boolean {
  let left = burstLines;
  let countedAt = performance.now();
  return () => {
    const now = performance.now();
    left = Math.min(burstLines, left + (now - countedAt) / intervalMs);
    countedAt = now;
    if (left < 1) return false;
    left--;
    return true;
  };
}

/** Logs the changes between failure and recovery, and no repeated failure. */
export interface FailureLog {
  failed(cause: unknown): void;
  recovered(): void;
}

/**
 * Logs when something begins to fail and when it works again, one line per change. If changes are
 * frequent, as on a nearly full disk, only a failure that comes after the interval is logged.
 */
export function failureLog(
  logFailure: (details: { err: unknown }) => void,
  logRecovery: () => void,
  rate = LOG_RATE,
): FailureLog {
  const takeLine = lineBucket(rate);
  /** Whether the last line was a failure. */
  let isFailureLogged = false;
  return {
    failed(cause) {
      if (isFailureLogged || !takeLine()) return;
      isFailureLogged = true;
      logFailure({ err: rawCause(cause) });
    },
    recovered() {
      if (isFailureLogged) logRecovery();
      isFailureLogged = false;
    },
  };
}

/**
 * Logs an event that may repeat often. `suppressed` is the number of events since the last line
 * that were not logged.
 */
export function rateLimitedLog(
  log: (details: { err: unknown; suppressed: number; trace_id: string | undefined }) => void,
  rate = LOG_RATE,
): (cause: unknown, traceId?: string) => void {
  const takeLine = lineBucket(rate);
  let suppressed = 0;
  return (cause, traceId) => {
    if (!takeLine()) {
      suppressed++;
      return;
    }
    log({ err: rawCause(cause), suppressed, trace_id: traceId });
    suppressed = 0;
  };
}

/** Logs an error that may repeat often, always with the same message. */
export function errorLog(log: ServiceLog, message: string): (cause: unknown, traceId?: string) => void {
  return rateLimitedLog(details => log.error(details, message));
}

/** The original error, because the error for the user has another message. */
function rawCause(error: unknown): unknown {
  const isReworded = error instanceof StoreUnavailable || error instanceof StoreInternalError;
  return isReworded ? (error.cause ?? error) : error;
}
