import { collectDefaultMetrics, Registry } from 'prom-client';
import { ERROR_NAMES, ERRORS } from '../core/contract/errors.ts';
import { OUTCOMES } from '../core/contract/plant.ts';
import { isErrorName, isOutcome, type Result } from '../core/response.ts';
import { type CommandRun, FAULTS_FOUND } from '../engines/command-runs.ts';
import type { ServiceState } from './readiness.ts';

/** Upper bounds of both duration histograms. A create waits less than 5 s. */
const DURATION_BOUNDS_SECONDS = [
  ...[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];
const BATCH_BOUNDS_PLANTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/** What was counted since the start. */
export interface Counts {
  responses: ReadonlyMap<Result, number>;
  batches: number;
  batchPlants: number;
  commitSeconds: number;
}

/**
 * The metrics for Prometheus, with the names and units that it recommends
 * (https://prometheus.io/docs/practices/naming/). They contain nothing that a client sends: no name
 * of a plant, no id, no token. Metrics of Node and of the process come from prom-client.
 */
export class Metrics {
  readonly #processMetrics = new Registry();
  readonly #build: string;
  readonly #responses = new Map<Result, number>();
  readonly #createDuration = bucketHistogram(
    'plant_store_create_duration_seconds',
    'Time from the arrival of a whole request to its 200 response.',
    DURATION_BOUNDS_SECONDS,
  );
  readonly #batchPlants = bucketHistogram(
    'plant_store_batch_plants',
    'Plants that shared a commit.',
    BATCH_BOUNDS_PLANTS,
  );
  readonly #commitDuration = bucketHistogram(
    'plant_store_commit_duration_seconds',
    'Time from giving a batch to the engine until the batch is durable.',
    DURATION_BOUNDS_SECONDS,
  );
  #commitsFailed = 0;

  constructor(version: string, engine: 'sqlite' | 'postgres') {
    const results: Result[] = ['other', ...OUTCOMES, ...ERROR_NAMES];
    for (const result of results) this.#responses.set(result, 0);
    this.#build = labels({ version, node_version: process.versions.node, engine });
    collectDefaultMetrics({ register: this.#processMetrics });
    // The suffix is for counters, but these are gauges. The same gauges exist without the suffix.
    for (const counted of ['handles', 'requests', 'resources'])
      this.#processMetrics.removeSingleMetric(`nodejs_active_${counted}_total`);
  }

  /** @param durationMs since the arrival of the whole request */
  countResponse(result: Result, durationMs: number): void {
    this.#responses.set(result, this.#responses.get(result)! + 1);
    if (isOutcome(result)) this.#createDuration.observe(durationMs / 1000);
  }

  committed(plants: number, durationMs: number): void {
    this.#batchPlants.observe(plants);
    this.#commitDuration.observe(durationMs / 1000);
  }

  commitFailed(): void {
    this.#commitsFailed++;
  }

  /** The console of the operator shows the difference of two readings. */
  counts(): Counts {
    return {
      responses: new Map(this.#responses),
      batches: this.#batchPlants.total().count,
      batchPlants: this.#batchPlants.total().sum,
      commitSeconds: this.#commitDuration.total().sum,
    };
  }

  get contentType(): string {
    return this.#processMetrics.contentType;
  }

  /** All metrics in the text format of Prometheus. */
  async text(state: ServiceState): Promise<string> {
    const counted = [
      metric(
        'plant_store_requests_total',
        'Requests by response: HTTP status, error number, and the name of the error or the outcome.',
        [...this.#responses].map(([result, count]) => [labelsOf(result), count]),
      ),
      this.#createDuration.text(),
      this.#batchPlants.text(),
      this.#commitDuration.text(),
      metric(
        'plant_store_commits_failed_total',
        'Batches that the engine did not confirm; the responses to their plants were 503.',
        [['', this.#commitsFailed]],
      ),
      metric('plant_store_build_info', 'Always 1; the labels identify the program.', [[this.#build, 1]]),
    ];
    return [...counted, ...gauges(state), await this.#processMetrics.metrics()].join('\n');
  }
}

/** https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
function metric(name: string, help: string, samples: [labels: string, value: number][]): string {
  const type = name.endsWith('_total') ? 'counter' : 'gauge';
  const lines = samples.map(([labels, value]) => `${name}${labels} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

/** No value needs escaping: all are names, numbers and versions. */
function labels(values: Record<string, string | number>): string {
  const pairs = Object.entries(values).map(([label, value]) => `${label}="${value}"`);
  return `{${pairs.join(',')}}`;
}

function labelsOf(result: Result): string {
  if (isOutcome(result)) return labels({ status: 200, result });
  if (!isErrorName(result)) return labels({ result });
  const { status, number } = ERRORS[result];
  return labels({ status, error: number, result });
}

/** Metrics that are read at each scrape, without those that the engine does not have. */
function gauges({ store, engine, ...state }: ServiceState): string[] {
  const runs = state.lastRuns.filter(({ command }) => command !== 'damage');
  const ofRuns = (name: string, help: string, valueIn: (run: CommandRun) => number): string =>
    metric(
      `plant_store_last_run_${name}`,
      help,
      runs.map(run => [labels({ run: run.command }), valueIn(run)]),
    );
  const { flushes } = engine;
  const rows: [name: string, help: string, value: number | boolean | undefined][] = [
    ['in_flight_plants', 'Plants that wait for a commit or are in one.', state.plantsInFlight],
    [
      'in_flight_limit_plants',
      'Limit of in_flight_plants, from the rate of the last commits; at the limit, responses are 503.',
      state.plantsInFlightMax,
    ],
    ['batches_in_flight', 'Batches that the engine is writing.', state.batchesInFlight],
    ['connections', 'Open connections of clients.', state.openConnections],
    ['store_up', 'Whether the store responds: 1 or 0.', store.failure === undefined],
    [
      'store_warnings',
      'Warnings of the store, as in the log and /readyz. Absent while the store does not respond.',
      store.warnings?.length,
    ],
    [
      'damage_known',
      'Whether anything has met damage since the last verify that passed, also before a restart: 1 or 0.',
      state.isDamaged,
    ],
    ['shutting_down', 'Whether the service is shutting down: 1 or 0.', state.isShuttingDown],
    ['tokens', 'Known tokens, including expired and revoked ones.', state.tokens.size],
    ['tokens_current', 'Whether the token table was read in the last 4 s: 1 or 0.', state.tokens.isCurrent],
    ['flushes_total', 'Commits that were flushed to the disk.', flushes?.count],
    ['flush_seconds_total', 'Total time of the flushes of commits.', flushes && flushes.totalMs / 1000],
    ['wal_bytes', 'Length of the write-ahead log.', engine.walBytes],
    [
      'checkpoint_failing',
      'Whether the write-ahead log could not be copied into the database file: 1 or 0.',
      engine.isCheckpointFailing,
    ],
    ['disk_free_bytes', 'Free space on the file system of the store.', engine.diskFreeBytes],
    ['store_connections', 'Connections to the database server.', engine.connections],
  ];
  return [
    ...rows
      .filter(([, , value]) => value !== undefined)
      .map(([name, help, value]) => metric(`plant_store_${name}`, help, [['', Number(value)]])),
    ofRuns('timestamp_seconds', 'When verify or backup last ended, since 1970.', run => run.endedAt / 1000),
    ofRuns('success', 'Whether verify or backup last found no fault: 1 or 0.', run =>
      Number(!run.result.startsWith(FAULTS_FOUND)),
    ),
  ];
}

/**
 * A Prometheus histogram. That of prom-client is slower, and every create is counted.
 *
 * @param upperBounds of the buckets, ascending, in the unit at the end of the name
 */
function bucketHistogram(name: string, help: string, upperBounds: readonly number[]) {
  /** The count of each bucket alone. The last bucket is for values above all bounds. */
  const counts = new Float64Array(upperBounds.length + 1);
  let sum = 0;
  return {
    observe(value: number): void {
      let bucket = 0;
      while (bucket < upperBounds.length && value > upperBounds[bucket]!) bucket++;
      counts[bucket]!++;
      sum += value;
    },
    total: (): { count: number; sum: number } => ({ count: counts.reduce((all, own) => all + own), sum }),
    /** https://prometheus.io/docs/instrumenting/exposition_formats/#histograms-and-summaries */
    text(): string {
      const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
      let count = 0;
      for (const [bucket, ownCount] of counts.entries()) {
        count += ownCount;
        lines.push(`${name}_bucket{le="${upperBounds[bucket] ?? '+Inf'}"} ${count}`);
      }
      return `${lines.join('\n')}\n${name}_sum ${sum}\n${name}_count ${count}\n`;
    },
  };
}
