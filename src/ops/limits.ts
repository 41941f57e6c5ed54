/** Limits of the operations listener and of the log. */

/** If the store does not respond within this time, `/readyz` reports the service as not ready. */
export const READINESS_TIMEOUT_MS = 2_000;
/** Interval of the store checks that log warnings, so that the log does not depend on `/readyz`. */
export const STORE_WATCH_INTERVAL_MS = 10_000;
/** When commits fail for longer than this, the service is not ready. */
export const COMMITS_FAILING_MAX_MS = 5_000;
/** Interval in which commits are assessed, and tested while they fail. */
export const COMMITS_ASSESSED_INTERVAL_MS = 1_000;
/** An idle connection stays open for this long: longer than the scrape interval of Prometheus. */
export const OPS_KEEP_ALIVE_MS = 72_000;
/** Limit for a repeated log line: a burst of `burstLines`, then one line per interval. */
export const LOG_RATE = { burstLines: 20, intervalMs: 10_000 };

/** Ids of damaged plants that are logged and counted. */
export const DAMAGED_PLANTS_MAX = 10_000;

/** Upper bounds of duration histograms, from a response without the store to the longest wait. */
export const DURATION_BOUNDS_SECONDS = [
  ...[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];
/** Upper bounds of the batch size histogram. */
export const BATCH_BOUNDS_PLANTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];
