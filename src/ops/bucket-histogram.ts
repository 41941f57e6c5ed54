/** The state of a histogram. */
export interface BucketCounts {
  upperBounds: readonly number[];
  /** The count of each bucket alone. The last bucket is for values above all bounds. */
  counts: readonly number[];
  sum: number;
}

/**
 * A Prometheus histogram. It counts in a plain array, because every create is counted, and
 * `observe` of prom-client is slower.
 */
export class BucketHistogram {
  readonly #name: string;
  readonly #help: string;
  readonly #upperBounds: readonly number[];
  /** The count of each bucket alone. The last bucket is for values above all bounds. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** @param upperBounds of the buckets, ascending, in the unit at the end of the name */
  constructor(name: string, help: string, upperBounds: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.#upperBounds = upperBounds;
    this.#counts = new Float64Array(upperBounds.length + 1);
  }

  observe(value: number): void {
    let bucket = 0;
    while (bucket < this.#upperBounds.length && value > this.#upperBounds[bucket]!) bucket++;
    this.#counts[bucket]!++;
    this.#sum += value;
  }

  read(): BucketCounts {
    return { upperBounds: this.#upperBounds, counts: [...this.#counts], sum: this.#sum };
  }

  /** https://prometheus.io/docs/instrumenting/exposition_formats/#histograms-and-summaries */
  text(): string {
    const name = this.#name;
    const lines = [`# HELP ${name} ${this.#help}`, `# TYPE ${name} histogram`];
    let count = 0;
    for (const [bucket, ownCount] of this.#counts.entries()) {
      count += ownCount;
      lines.push(`${name}_bucket{le="${this.#upperBounds[bucket] ?? '+Inf'}"} ${count}`);
    }
    return `${lines.join('\n')}\n${name}_sum ${this.#sum}\n${name}_count ${count}\n`;
  }
}
