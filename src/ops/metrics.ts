import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { ERROR_NAMES, ERRORS } from '../contract/errors.ts';
import { OUTCOMES } from '../contract/plant.ts';
import { isErrorName, isOutcome, type Result } from '../contract/result.ts';
import { BucketHistogram } from './bucket-histogram.ts';
import type { ObservedService } from './observed-service.ts';

/** Which program this is. */
export interface Build {
  version: string;
  engine: 'sqlite' | 'postgres';
}

/** In seconds: from an answer out of memory to the longest that a plant may wait. */
const DURATION_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const BATCH_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/**
 * What Prometheus reads, under the names and in the units that it asks for
 * (https://prometheus.io/docs/practices/naming/). Nothing that a client sends gets into it: no name, no id, no token.
 *
 * What happens with every request is counted in plain numbers (see {@link BucketHistogram}); the rest is counted once a
 * batch, or read when it is asked for.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #answers: Record<Result, number>;
  readonly #createDuration = new BucketHistogram(
    'plant_store_create_duration_seconds',
    'From the arrival of a whole request to its answer 200.',
    DURATION_BOUNDS,
  );
  readonly #batchPlants: Histogram;
  readonly #commitDuration: Histogram;
  readonly #commitsFailed: Counter;

  constructor({ version, engine }: Build) {
    const registers = [this.#registry];
    const results: Result[] = ['other', ...OUTCOMES, ...ERROR_NAMES];
    this.#answers = Object.fromEntries(results.map(result => [result, 0])) as Record<Result, number>;
    this.#batchPlants = new Histogram({
      name: 'plant_store_batch_plants',
      help: 'Plants that shared a commit.',
      buckets: BATCH_BOUNDS,
      registers,
    });
    this.#commitDuration = new Histogram({
      name: 'plant_store_commit_duration_seconds',
      help: 'From handing a batch to the engine to its word that the batch is durable.',
      buckets: DURATION_BOUNDS,
      registers,
    });
    this.#commitsFailed = new Counter({
      name: 'plant_store_commits_failed_total',
      help: 'Batches that the engine did not confirm; their plants were answered 503.',
      registers,
    });
    new Gauge({
      name: 'plant_store_build_info',
      help: 'Always 1; the labels say which program this is.',
      labelNames: ['version', 'node_version', 'engine'],
      registers,
    }).set({ version, node_version: process.versions.node, engine }, 1);
    collectDefaultMetrics({ register: this.#registry });
  }

  answered(result: Result, durationMs = 0): void {
    this.#answers[result]++;
    if (isOutcome(result)) this.#createDuration.observe(durationMs / 1000);
  }

  committed(plants: number, durationMs: number): void {
    this.#batchPlants.observe(plants);
    this.#commitDuration.observe(durationMs / 1000);
  }

  commitFailed(): void {
    this.#commitsFailed.inc();
  }

  #requestsText(): Promise<string> {
    const registry = new Registry();
    const requests = new Counter({
      name: 'plant_store_requests_total',
      help: 'Requests by their answer: HTTP status, error number, and its name or the outcome of the plant.',
      labelNames: ['status', 'error', 'result'],
      registers: [registry],
    });
    for (const [result, count] of Object.entries(this.#answers))
      requests.inc(labelsOf(result as Result), count);
    return registry.metrics();
  }

  /** Everything, in the text format of Prometheus. */
  async text(service: ObservedService): Promise<string> {
    // First, since it waits for the store: what is counted is then no older than the answer.
    const read = await readNow(service);
    const [counted, requests] = await Promise.all([this.#registry.metrics(), this.#requestsText()]);
    return [requests, this.#createDuration.text(), read, counted].join('\n');
  }

  get contentType(): string {
    return this.#registry.contentType;
  }
}

function labelsOf(result: Result): Record<string, string | number> {
  if (isOutcome(result)) return { status: 200, result };
  if (!isErrorName(result)) return { result };
  const { status, number } = ERRORS[result];
  return { status, error: number, result };
}

/** What is not counted but read when it is asked for. */
async function readNow(service: ObservedService): Promise<string> {
  // Before the store is waited for: as things are now.
  const { plantsUnderWay, plantsUnderWayMax, batchesInFlight } = service.load();
  const [store, engine, connections] = await Promise.all([
    service.storeState(),
    service.engineFigures(),
    service.openConnections(),
  ]);
  const tokens = service.tokens();
  const { flushes } = engine;
  const rows: [name: string, help: string, value: number | boolean | undefined][] = [
    ['plant_store_under_way_plants', 'Plants that wait for a commit or are in one.', plantsUnderWay],
    [
      'plant_store_under_way_limit_plants',
      'How many may be under way, by the pace of the last commits; the next one is answered 503.',
      plantsUnderWayMax,
    ],
    ['plant_store_batches_in_flight', 'Batches that the engine works on.', batchesInFlight],
    ['plant_store_connections', 'Open connections of clients.', connections],
    ['plant_store_store_up', 'Whether the store answers: 1 or 0.', store.reachable],
    [
      'plant_store_store_warnings',
      'Things that the store warns of; the log and /readyz name them. Unknown while it does not answer.',
      store.reachable ? store.warnings.length : undefined,
    ],
    ['plant_store_shutting_down', 'Whether the service is shutting down: 1 or 0.', service.isShuttingDown()],
    ['plant_store_tokens', 'Tokens that are known, those out of force included.', tokens.known],
    [
      'plant_store_tokens_current',
      'Whether the last look for changes to tokens succeeded: 1 or 0.',
      tokens.areCurrent,
    ],
    ['plant_store_flushes_total', 'Commits that were flushed to the disk.', flushes?.count],
    ['plant_store_flush_seconds_total', 'Time that these took in all.', flushes && flushes.totalMs / 1000],
    ['plant_store_wal_bytes', 'Length of the write-ahead log.', engine.logBytes],
    [
      'plant_store_checkpoint_failing',
      'Whether the write-ahead log could not be copied into the database file: 1 or 0.',
      engine.isCheckpointFailing,
    ],
    ['plant_store_disk_free_bytes', 'Left on the file system of the store.', engine.diskFreeBytes],
    ['plant_store_store_connections', 'Connections to the database server.', engine.connections],
  ];
  const registry = new Registry();
  for (const [name, help, value] of rows) {
    if (value === undefined) continue;
    const settings = { name, help, registers: [registry] };
    if (name.endsWith('_total')) new Counter(settings).inc(Number(value));
    else new Gauge(settings).set(Number(value));
  }
  return registry.metrics();
}
