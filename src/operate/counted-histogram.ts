import { Histogram, type HistogramConfiguration } from 'prom-client';

/**
 * A histogram without labels in a registry of prom-client. It counts its values itself, since
 * `Histogram.observe` takes as long as a fiftieth of a create (docs/performance.md).
 */
export class CountedHistogram extends Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  /** By bucket, without the values of lower buckets. The last bucket has no bound. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(configuration: HistogramConfiguration<never> & { buckets: readonly number[] }) {
    super({ ...configuration, buckets: [...configuration.buckets] });
    this.#name = configuration.name;
    this.#help = configuration.help;
    this.#bounds = configuration.buckets;
    this.#counts = new Float64Array(this.#bounds.length + 1);
  }

  get sum(): number {
    return this.#sum;
  }

  /** How many values were counted. */
  get total(): number {
    return this.#counts.reduce((total, count) => total + count, 0);
  }

  count(value: number): void {
    let bucket = 0;
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket++;
    this.#counts[bucket]!++;
    this.#sum += value;
  }

  /** The registry and `get` call this. A bucket of Prometheus includes the values of all lower ones. */
  async getForPromString() {
    let total = 0;
    const buckets = Array.from(this.#counts, (count, bucket) => {
      total += count;
      return this.#value('_bucket', total, { le: this.#bounds[bucket] ?? '+Inf' });
    });
    return {
      name: this.#name,
      help: this.#help,
      type: 'histogram',
      values: [...buckets, this.#value('_sum', this.#sum), this.#value('_count', total)],
    };
  }

  #value(suffix: string, value: number, labels: { le?: number | string } = {}) {
    return { metricName: this.#name + suffix, value, labels };
  }
}
