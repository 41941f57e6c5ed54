import { fuzz } from '../test/harness/fuzz.ts';
import type { Result, Scenario } from './scenario.ts';

const REQUESTS = 1_000_000;
/** The number of requests to each service and its store. */
const REQUESTS_PER_SERVICE = 20_000;
/** The timeout of a connection after its last byte was sent. */
const HANG_TIMEOUT_MS = 1_000;

/** Sends mutated requests to new services, like `test/http/fuzz.test.ts`, but for longer. */
export const fuzzing: Scenario = {
  name: 'fuzz',
  summary: `${REQUESTS} mutated requests: no 5xx, no hang over 1 s, no crash, no plant stored without a 200`,
  needs: [],
  secondsMin: 15,
  finds: [],
  async run({ seed, budgetMs, signal, tell }) {
    const untilMs = performance.now() + budgetMs;
    const measurements = { requests: 0, connections: 0, 'plants stored': 0, 'slowest connection, ms': 0 };
    const responses: Record<string, number> = {};
    const faults: string[] = [];
    const isOver = (): boolean => measurements.requests >= REQUESTS || faults.length > 0 || signal.aborted;
    for (let round = 1; !isOver() && performance.now() < untilMs; round++) {
      const order = { requests: REQUESTS_PER_SERVICE, hangTimeoutMs: HANG_TIMEOUT_MS };
      // The rounds have different seeds.
      const result = await fuzz({ seed: seed * 1_000 + round, ...order });
      faults.push(...result.faults.map(fault => `round ${round}: ${fault}`));
      measurements.requests += result.requests;
      measurements.connections += result.connections;
      measurements['plants stored'] += result.stored;
      const slowestMs = Math.max(measurements['slowest connection, ms'], Math.round(result.slowestMs));
      measurements['slowest connection, ms'] = slowestMs;
      for (const [status, count] of Object.entries(result.responses))
        responses[status] = (responses[status] ?? 0) + count;
      tell(`${measurements.requests} requests, slowest ${slowestMs} ms, ${faults.length} faults`);
    }
    return {
      faults,
      measurements: { ...measurements, responses: JSON.stringify(responses) },
    } satisfies Result;
  },
};
