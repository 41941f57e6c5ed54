import { writeSync } from 'node:fs';
import { readableLine } from './log-line.ts';

/**
 * Writes log lines to stdout, as JSON for programs, or as text for people at a terminal. A line
 * that stdout does not take is lost, since a full disk, a closed pipe or a stalled reader must not
 * stop the service. A later line has the number of lost lines.
 */
export function logOutput(): { write: (line: string) => void } {
  const shown = process.stdout.isTTY ? readableLine : (line: string): string => line;
  let lostLines = 0;
  /** Whether stdout has taken only a part of the last line. */
  let isLineOpen = false;
  return {
    write(line) {
      const report = lostLines === 0 ? '' : shown(`${lossReport(lostLines)}\n`);
      const bytes = Buffer.from(`${isLineOpen ? '\n' : ''}${report}${shown(line)}`);
      let written = 0;
      try {
        written = writeSync(process.stdout.fd, bytes);
        isLineOpen = written < bytes.length;
      } catch {}
      lostLines = written === bytes.length ? 0 : lostLines + 1;
    },
  };
}

function lossReport(lostLines: number): string {
  const msg = 'log lines are lost, because the reader of stdout stalled or its disk was full';
  return JSON.stringify({ level: 40, time: new Date().toISOString(), lostLines, msg });
}
