import { CountedProgress, shareOf } from '../../src/cli/shared/progress-display.ts';
import type { Outcome } from '../../src/core/contract/plant.ts';
import { amount, formatCount, perSecond } from '../../src/formats/number-text.ts';

/** How many rows had each result. */
export type RowCounts = Record<Outcome | 'rejected', number>;

/** Makes a text such as `1 created, 0 unchanged, 1 replaced, 0 rejected`. */
export function countsText({ created, unchanged, revised, rejected }: RowCounts): string {
  const counts = { created, unchanged, replaced: revised, rejected };
  return Object.entries(counts)
    .map(([name, count]) => `${formatCount(count)} ${name}`)
    .join(', ');
}

/** The progress of an import. Its share is that of the bytes whose rows were sent. */
export class Progress extends CountedProgress {
  readonly rowCounts: RowCounts = { created: 0, unchanged: 0, revised: 0, rejected: 0 };
  #bytesRead = 0;
  #bytesSent = 0;

  /** @param bytesTotal size of all files on disk; undefined if unknown */
  constructor(bytesTotal: number | undefined) {
    super('importing', 'plants', bytesTotal);
  }

  protected override get share(): number | undefined {
    return shareOf(this.#bytesSent, this.total);
  }

  /** Counts bytes of a file that were read. */
  read(bytes: number): void {
    this.#bytesRead += bytes;
  }

  /**
   * Counts a row that was sent. The share is that of sent rows, since a file may be read at once
   * and its rows sent at a limited rate.
   *
   * @param rowsLeft number of rows that were read and not sent, with this one
   */
  sent(rowsLeft: number): void {
    this.#bytesSent += (this.#bytesRead - this.#bytesSent) / rowsLeft;
  }

  /** Counts a row that was stored or rejected. */
  count(what: Outcome | 'rejected'): void {
    this.rowCounts[what]++;
    this.done++;
  }

  /**
   * Makes a text such as `34% sent, 4 s left: 51,717 created, 0 unchanged, 0 replaced, 0 rejected`.
   * It has no rate, so that all counts fit into a line of a terminal.
   */
  override state(): string {
    const timing = this.timing('% sent');
    return `${timing === '' ? '' : `${timing}: `}${countsText(this.rowCounts)}`;
  }

  /** Makes a text such as `2 rows: 1 created, 0 unchanged, 1 replaced, 0 rejected in 1 s (2/s)`. */
  summary(): string {
    const elapsedMs = performance.now() - this.startMs;
    const seconds = (elapsedMs / 1000).toFixed(1);
    const rate = formatCount(perSecond(this.done, elapsedMs));
    return `${amount(this.done, 'row')}: ${countsText(this.rowCounts)} in ${seconds} s (${rate}/s)`;
  }
}
