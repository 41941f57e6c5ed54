import { execFile, spawnSync } from 'node:child_process';
import { promisify, stripVTControlCharacters } from 'node:util';

/** What `slowhttptest` of Debian saw, a client that is not ours. */
export interface SlowHttpTestResult {
  /** Until it had no connection left that was open; undefined when it had when its time was over. */
  allCutSeconds: number | undefined;
  /** Whether each of its requests that are not slow was answered in time. */
  wasAvailable: boolean;
}

const PROBE_SECONDS_MAX = 5;

/** Whether `slowhttptest` is on this machine. */
export function hasSlowHttpTest(): boolean {
  return spawnSync('slowhttptest', ['-h']).error === undefined;
}

/** Opens connections that send a header field now and then, and asks beside them whether the service is there. */
export async function slowHeadersByOthers(
  url: string,
  connections: number,
  { seconds, intervalSeconds, signal }: { seconds: number; intervalSeconds: number; signal: AbortSignal },
): Promise<SlowHttpTestResult> {
  const args = ['-H', '-c', connections, '-r', connections, '-l', seconds, '-i', intervalSeconds];
  const { stdout } = await promisify(execFile)(
    'slowhttptest',
    [...args, '-p', PROBE_SECONDS_MAX, '-u', url].map(String),
    { signal, maxBuffer: Number.POSITIVE_INFINITY },
  );
  const report = stripVTControlCharacters(stdout);
  const isOver = report.includes('Exit status: No open connections left');
  const states = Array.from(report.matchAll(/^service available: *(\w+)/gm), ([, state]) => state);
  return {
    allCutSeconds: isOver ? Number(/^Test ended on (\d+)/m.exec(report)?.[1]) : undefined,
    wasAvailable: states.length > 0 && states.every(state => state === 'YES'),
  };
}
