import { randomBytes } from 'node:crypto';
import { NEIGHBOUR_SEARCH_IDS } from './limits.ts';
import type { Rule } from './rule.ts';

export interface IdRange {
  from: bigint;
  to: bigint;
}

/** The ids under which the rules of one run store plants. */
export interface RunIds {
  /** For each rule and the first contact; consecutive, except for fixed ids. */
  fresh: bigint[];
  /** Two consecutive ids with the same double value; undefined if the range contains none. */
  neighbours: [bigint, bigint] | undefined;
  /** Fixed ids of the rules that are in the range. */
  fixed: Set<bigint>;
}

/** The default range. Every server can store these ids, also one with 32-bit ids. */
const IDS_OF_EVERY_SERVER: IdRange = { from: 1n, to: 2n ** 31n - 1n };

export function idsNeeded(rules: readonly Rule[]): bigint {
  return BigInt(rules.length + 1) + BigInt(fixedIdsOf(rules).size) + NEIGHBOUR_SEARCH_IDS;
}

/** The ids that rules always use, such as the largest int64. */
function fixedIdsOf(rules: readonly Rule[]): Set<bigint> {
  return new Set(rules.flatMap(({ fixedIds = [] }) => fixedIds));
}

/**
 * Draws the ids of a run from a random place. In a wide range, two runs then rarely use the same
 * id. An id that is already stored would change the response.
 *
 * @param range the permitted ids, at least {@link idsNeeded}; undefined: the default range
 */
export function drawIds(rules: readonly Rule[], range?: IdRange): RunIds {
  const { from, to } = range ?? IDS_OF_EVERY_SERVER;
  const named = fixedIdsOf(rules);
  const fresh: bigint[] = [];
  // 128 random bits for a range of at most 64 bits make the modulo almost uniform.
  const random = BigInt(`0x${randomBytes(16).toString('hex')}`);
  let id = from + (random % (to - from + 2n - idsNeeded(rules)));
  for (; fresh.length < rules.length + 1; id++) if (!named.has(id)) fresh.push(id);
  const fixed = new Set([...named].filter(each => range === undefined || (each >= from && each <= to)));
  // Below 2^53 all integers have different doubles, so the default run uses a place beyond 2^53.
  const start = range === undefined ? 2n ** 53n + 4n * fresh[0]! : id;
  for (let first = start; first < start + NEIGHBOUR_SEARCH_IDS; first++) {
    const second = first + 1n;
    if (range !== undefined && second > to) break;
    const isFree = !named.has(first) && !named.has(second);
    if (isFree && Number(first) === Number(second)) return { fresh, fixed, neighbours: [first, second] };
  }
  return { fresh, fixed, neighbours: undefined };
}

export function shownIds({ fresh, fixed, neighbours }: RunIds): string {
  const single = [...(neighbours ?? []), ...fixed].sort((a, b) => Number(a - b));
  const others = single.length > 0 ? `, and ${single.join(', ')}` : '';
  return `up to ${fresh.length + single.length} plants that nobody can delete: ids ${fresh[0]} to ${fresh.at(-1)}${others}`;
}
