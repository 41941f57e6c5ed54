import { writeSync } from 'node:fs';
import type { Logger } from 'pino';

/**
 * Writes log lines to stdout without waiting for its reader. A full disk, a closed pipe or a reader
 * that stalls must not stop the service. So a line that stdout does not take is lost, and counted.
 */
export class LogOutput {
  /** Since the start. */
  lostLines = 0;
  #reportedLines = 0;
  /** Whether stdout has taken only the beginning of the last line. */
  #isLineOpen = false;

  readonly write = (line: string): void => {
    try {
      const bytes = Buffer.from(this.#isLineOpen ? `\n${line}` : line);
      const written = writeSync(process.stdout.fd, bytes);
      this.#isLineOpen = written < bytes.length;
      if (this.#isLineOpen) this.lostLines++;
    } catch {
      this.lostLines++;
    }
  };

  /** Logs how many lines were lost since the last report, as soon as stdout takes the report. */
  report(log: Logger): void {
    const { lostLines } = this;
    if (lostLines === this.#reportedLines) return;
    const advice = 'log lines are lost, because the reader of stdout stalled or its disk was full';
    log.warn({ lostLines: lostLines - this.#reportedLines }, advice);
    if (this.lostLines === lostLines) this.#reportedLines = lostLines;
    // A report that is lost itself does not count: it is repeated.
    this.lostLines = lostLines;
  }
}
