/** Limits of what operators are told: the operations listener and the log. */

/** The store has this long to answer before `/readyz` calls the service not ready. */
export const READINESS_TIMEOUT_MS = 2_000;
/** The service asks its store this often what it warns of, so that the log has it though nobody asks `/readyz`. */
export const STORE_WATCH_INTERVAL_MS = 10_000;
/** An idle connection of an operator is kept open this long: longer than Prometheus waits between two scrapes. */
export const OPS_KEEP_ALIVE_MS = 72_000;
/** What happens over and over gets so many lines in the log, and then one in each interval. */
export const LOG_RATE = { linesAtOnce: 20, intervalMs: 10_000 };

/** Upper bounds of the histograms of times: from a response out of memory to the longest that a plant may wait. */
export const DURATION_BOUNDS_SECONDS = [
  ...[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];
/** Upper bounds of the histogram of batches. */
export const BATCH_BOUNDS_PLANTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];
