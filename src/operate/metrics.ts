import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { ERROR_NAMES, ERRORS } from '../core/contract/errors.ts';
import { OUTCOMES } from '../core/contract/plant.ts';
import type { ResponseObserver } from '../core/extension-points.ts';
import { type HttpResponse, isErrorName, isOutcome, type RequestResult } from '../core/response.ts';
import { CountedHistogram } from './counted-histogram.ts';
import type { ServiceState } from './health/service-state.ts';

/** Upper bounds of both duration histograms. A create takes less than 5 s. */
const DURATION_BOUNDS_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
const BATCH_BOUNDS_PLANTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/** What was counted since the start. */
export interface Counts {
  responses: ReadonlyMap<RequestResult, number>;
  batches: number;
  batchPlants: number;
  commitSeconds: number;
}

/**
 * The metrics for Prometheus, with the names and units that it recommends
 * (https://prometheus.io/docs/practices/naming/). They contain nothing that a client sends: no name
 * of a plant, no id, no token.
 */
export class Metrics implements ResponseObserver {
  /** Metrics of the service and of Node. Other parts may add metrics of their own. */
  readonly registry = new Registry();
  readonly #responses = new Map<RequestResult, number>();
  readonly #createDuration = new CountedHistogram({
    name: 'plant_store_create_duration_seconds',
    help: 'Time from the arrival of a whole request to its 200 response.',
    buckets: DURATION_BOUNDS_SECONDS,
    registers: [this.registry],
  });
  readonly #batchPlants = new CountedHistogram({
    name: 'plant_store_batch_plants',
    help: 'Plants that shared a commit.',
    buckets: BATCH_BOUNDS_PLANTS,
    registers: [this.registry],
  });
  readonly #commitDuration = new CountedHistogram({
    name: 'plant_store_commit_duration_seconds',
    help: 'Time from giving a batch to the engine until the batch is durable.',
    buckets: DURATION_BOUNDS_SECONDS,
    registers: [this.registry],
  });
  readonly #commitsFailed = new Counter({
    name: 'plant_store_commits_failed_total',
    help: 'Batches that the engine did not confirm; the responses to their plants were 503.',
    registers: [this.registry],
  });

  constructor(version: string, engine: 'sqlite' | 'postgres') {
    const results: RequestResult[] = ['other', ...OUTCOMES, ...ERROR_NAMES];
    for (const result of results) this.#responses.set(result, 0);
    registerRequests(this.registry, this.#responses);
    new Gauge({
      name: 'plant_store_build_info',
      help: 'Always 1; the labels identify the program.',
      labelNames: ['version', 'node_version', 'engine'],
      registers: [this.registry],
    }).set({ version, node_version: process.versions.node, engine }, 1);
    collectDefaultMetrics({ register: this.registry });
    // The suffix is for counters, but these are gauges. The same gauges exist without the suffix.
    for (const counted of ['handles', 'requests', 'resources'])
      this.registry.removeSingleMetric(`nodejs_active_${counted}_total`);
  }

  /** Counts a response. For a stored plant, it also measures the duration. */
  responded({ result }: Pick<HttpResponse, 'result'>, _request: unknown, durationMs: number): void {
    this.#responses.set(result, this.#responses.get(result)! + 1);
    if (isOutcome(result)) this.#createDuration.count(durationMs / 1000);
  }

  /** Counts a batch that the engine confirmed. */
  committed(plants: number, durationMs: number): void {
    this.#batchPlants.count(plants);
    this.#commitDuration.count(durationMs / 1000);
  }

  /** Counts a batch that the engine did not confirm. */
  commitFailed(): void {
    this.#commitsFailed.inc();
  }

  /** A copy of the counts, so that a caller can compute the difference of two readings. */
  counts(): Counts {
    return {
      responses: new Map(this.#responses),
      batches: this.#commitDuration.total,
      batchPlants: this.#batchPlants.sum,
      commitSeconds: this.#commitDuration.sum,
    };
  }

  /** All metrics in the text format of Prometheus. */
  text(state: ServiceState): Promise<string> {
    return Registry.merge([this.registry, registryOf(state)]).metrics();
  }
}

/** Each scrape sets this counter from a map, because counting with labels is slower. */
function registerRequests(registry: Registry, responses: ReadonlyMap<RequestResult, number>): void {
  new Counter({
    name: 'plant_store_requests_total',
    help: 'Requests by response: HTTP status, error number, and the name of the error or the outcome.',
    labelNames: ['status', 'error', 'result'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [result, count] of responses) this.inc(labelsOf(result), count);
    },
  });
}

function labelsOf(result: RequestResult): { status?: number; error?: number; result: RequestResult } {
  if (isOutcome(result)) return { status: 200, result };
  if (!isErrorName(result)) return { result };
  const { status, number } = ERRORS[result];
  return { status, error: number, result };
}

/**
 * Makes the metrics of one scrape, all from the same state. The registry is a new one each time, so
 * that metrics which the engine does not have are absent.
 */
function registryOf({ store, engine, ...state }: ServiceState): Registry {
  const registry = new Registry();
  const registers = [registry];
  const gauge = (name: string, help: string, value: number | boolean | undefined): void => {
    if (value !== undefined) new Gauge({ name: `plant_store_${name}`, help, registers }).set(Number(value));
  };
  const counter = (name: string, help: string, value: number | undefined): void => {
    if (value !== undefined) new Counter({ name: `plant_store_${name}`, help, registers }).inc(value);
  };
  gauge('in_flight_plants', 'Plants that wait for a commit or are in one.', state.plantsInFlight);
  gauge(
    'in_flight_limit_plants',
    'Limit of in_flight_plants, from the rate of the last commits; at the limit, responses are 503.',
    state.plantsInFlightMax,
  );
  gauge('batches_in_flight', 'Batches that the engine is writing.', state.batchesInFlight);
  gauge('connections', 'Open connections of clients.', state.openConnections);
  gauge('store_up', 'Whether the store responds: 1 or 0.', store.kind === 'usable');
  gauge(
    'store_warnings',
    'Warnings of the store, as in the log and /readyz. Absent while the store does not respond.',
    store.kind === 'usable' ? store.warnings.length : undefined,
  );
  gauge(
    'damage_known',
    'Whether anything has found damage since the last verify that passed, also before a restart: 1 or 0.',
    state.isDamaged,
  );
  gauge('shutting_down', 'Whether the service is shutting down: 1 or 0.', state.isShuttingDown);
  gauge('tokens', 'Known tokens, including expired and revoked ones.', state.tokens.size);
  gauge(
    'tokens_current',
    'Whether the token table was read in the last 4 s: 1 or 0.',
    state.tokens.isCurrent,
  );
  const sqlite = engine.kind === 'sqlite' ? engine : undefined;
  counter('flushes_total', 'Commits that were flushed to the disk.', sqlite?.flushes.count);
  counter(
    'flush_seconds_total',
    'Total time of the flushes of commits.',
    sqlite && sqlite.flushes.totalMs / 1000,
  );
  gauge('wal_bytes', 'Length of the write-ahead log.', sqlite?.walBytes);
  gauge(
    'checkpoint_failing',
    'Whether the write-ahead log could not be copied into the database file: 1 or 0.',
    sqlite?.isCheckpointFailing,
  );
  // An unknown disk counts as full, so that its alert fires.
  const freeBytes = sqlite && (sqlite.disk?.freeBytes ?? 0);
  gauge('disk_free_bytes', 'Free space on the file system of the store.', freeBytes);
  gauge(
    'store_connections',
    'Connections to the database server.',
    engine.kind === 'postgres' ? engine.connections : undefined,
  );
  const lastRunAt = new Gauge({
    name: 'plant_store_last_run_timestamp_seconds',
    help: 'When verify or backup last ended, since 1970.',
    labelNames: ['run'],
    registers,
  });
  const lastRunSuccess = new Gauge({
    name: 'plant_store_last_run_success',
    help: 'Whether verify or backup last found no fault: 1 or 0.',
    labelNames: ['run'],
    registers,
  });
  for (const { command, endedAt, hasSucceeded } of state.lastRuns) {
    lastRunAt.set({ run: command }, endedAt / 1000);
    lastRunSuccess.set({ run: command }, Number(hasSucceeded));
  }
  return registry;
}
