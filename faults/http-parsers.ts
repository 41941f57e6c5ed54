import { isDeepStrictEqual } from 'node:util';
import { makeToken } from '../src/core/tokens/token.ts';
import { drawSendings } from '../test/harness/arbitrary-requests.ts';
import { reasonForMore, takenByNode, takenByService } from '../test/harness/request-readers.ts';
import type { Scenario } from './scenario.ts';

const REQUESTS = 1_000_000;
const SHOWN_CHARACTERS_MAX = 2_000;

/**
 * Gives the same mutated bytes to the parser of the service and to Node's HTTP server. Each request
 * that the service takes must be one that Node takes, too, with the same method, target, fields and
 * body, except for those with {@link reasonForMore}.
 */
export const httpParsers: Scenario = {
  name: 'http-parsers',
  summary: `${REQUESTS} mutated requests: none is taken that Node's HTTP parser rejects or reads in another way`,
  needs: [],
  secondsMin: 15,
  finds: [],
  /** `roundsMax` is the number of draws. */
  async run({ seed, budgetMs, roundsMax = Number.POSITIVE_INFINITY, signal, tell }) {
    const untilMs = performance.now() + budgetMs;
    const faults: string[] = [];
    const measurements: Record<string, number> = { requests: 0, 'requests that Node takes': 0 };
    const count = (what: string, by: number) => (measurements[what] = (measurements[what] ?? 0) + by);
    const token = makeToken();
    for (let draw = 0; draw < roundsMax && faults.length === 0; draw++) {
      if (signal.aborted || performance.now() >= untilMs || measurements.requests! >= REQUESTS) break;
      for (const { bytes } of drawSendings(token, seed, draw)) {
        const [ours, nodes] = [takenByService(bytes), await takenByNode(bytes)];
        count('requests', ours.length);
        count('requests that Node takes', nodes.length);
        const other = ours.findIndex((request, index) => !isDeepStrictEqual(request, nodes[index]));
        const reason =
          ours[other] && nodes[other] === undefined && reasonForMore(ours[other], ours[other - 1]);
        if (reason) count(reason, 1);
        else if (other !== -1) {
          const shown = JSON.stringify(bytes.toString('latin1')).slice(0, SHOWN_CHARACTERS_MAX);
          faults.push(`request ${other + 1} is taken in another way: ${shown}`);
        }
      }
      if (draw % 100 === 99) tell(`${measurements.requests} requests, ${faults.length} faults`);
    }
    return { faults, measurements };
  },
};
