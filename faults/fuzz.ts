import { fuzz } from '../test/harness/fuzz.ts';
import type { Result, Scenario } from './scenario.ts';

const REQUESTS = 1_000_000;
/** For each service and store; then the next one is started. */
const REQUESTS_AT_A_TIME = 20_000;
/** A connection on which all was sent has this long to be answered and closed. */
const TIMER_MS_MAX = 1_000;

/** Mutated requests, each round to a service of its own: `test/http/fuzz.test.ts` for longer. */
export const fuzzing: Scenario = {
  name: 'fuzz',
  summary: `${REQUESTS} mutated requests: no 5xx, no hang over 1 s, no crash, nothing stored that was not answered 200`,
  needs: [],
  secondsMin: 15,
  finds: [],
  async run({ seed, budgetMs, signal, tell }) {
    const untilMs = performance.now() + budgetMs;
    const figures = { requests: 0, connections: 0, 'plants stored': 0, 'slowest connection, ms': 0 };
    const responses: Record<string, number> = {};
    const faults: string[] = [];
    const isOver = (): boolean => figures.requests >= REQUESTS || faults.length > 0 || signal.aborted;
    for (let round = 1; !isOver() && performance.now() < untilMs; round++) {
      const order = { requests: REQUESTS_AT_A_TIME, waitMsMax: TIMER_MS_MAX };
      // Each round has draws of its own.
      const result = await fuzz({ seed: seed * 1_000 + round, ...order });
      faults.push(...result.faults.map(fault => `round ${round}: ${fault}`));
      figures.requests += result.requests;
      figures.connections += result.connections;
      figures['plants stored'] += result.stored;
      const slowestMs = Math.max(figures['slowest connection, ms'], Math.round(result.slowestMs));
      figures['slowest connection, ms'] = slowestMs;
      for (const [status, count] of Object.entries(result.responses))
        responses[status] = (responses[status] ?? 0) + count;
      tell(`${figures.requests} requests, slowest ${slowestMs} ms, ${faults.length} faults`);
    }
    return { faults, figures: { ...figures, responses: JSON.stringify(responses) } } satisfies Result;
  },
};
