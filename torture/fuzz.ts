import { fuzz } from '../test/harness/fuzz.ts';
import type { Ordeal, OrdealOrder, OrdealResult } from './ordeal.ts';

const REQUESTS = 1_000_000;
/** For each service and store; then the next one is started. */
const REQUESTS_AT_A_TIME = 20_000;
/** A connection on which all was sent has this long to be answered and closed. */
const WAIT_MS_MAX = 1_000;

/** Mutated requests, each round to a service of its own. */
export const fuzzOrdeal: Ordeal = {
  name: 'fuzz',
  summary: `${REQUESTS} mutated requests: no 5xx, no hang over 1 s, no crash, nothing stored that was not answered 200`,
  finds: [],
  run: runFuzz,
};

async function runFuzz({ seed, budgetMs, signal, tell }: OrdealOrder): Promise<OrdealResult> {
  const untilMs = performance.now() + budgetMs;
  const total = { requests: 0, connections: 0, stored: 0, slowestMs: 0 };
  const answers: Record<string, number> = {};
  const faults: string[] = [];
  for (let round = 1; total.requests < REQUESTS && faults.length === 0 && !signal.aborted; round++) {
    if (performance.now() >= untilMs) break;
    // Each round has draws of its own.
    const result = await fuzz({
      ...{ seed: seed * 1_000 + round, requests: REQUESTS_AT_A_TIME, waitMsMax: WAIT_MS_MAX },
    });
    faults.push(...result.faults.map(fault => `round ${round}: ${fault}`));
    total.requests += result.requests;
    total.connections += result.connections;
    total.stored += result.stored;
    total.slowestMs = Math.max(total.slowestMs, result.slowestMs);
    for (const [status, count] of Object.entries(result.answers))
      answers[status] = (answers[status] ?? 0) + count;
    tell(`${total.requests} requests, slowest ${total.slowestMs.toFixed(0)} ms, ${faults.length} faults`);
  }
  return {
    faults,
    figures: {
      ...{ requests: total.requests, connections: total.connections, 'plants stored': total.stored },
      'slowest connection, ms': Math.round(total.slowestMs),
      answers: JSON.stringify(answers),
    },
  };
}
