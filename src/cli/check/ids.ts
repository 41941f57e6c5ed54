import { randomBytes } from 'node:crypto';
import { NEIGHBOUR_SEARCH_IDS } from './limits.ts';
import type { Rule } from './rule.ts';

export interface IdRange {
  from: bigint;
  to: bigint;
}

/** The ids of one run, under which its rules store plants. */
export interface RunIds {
  /** One for each rule and one to begin with, in a row but for the fixed ones. */
  fresh: bigint[];
  /** Two in a row that are one double; undefined when the range has none. */
  neighbours: [bigint, bigint] | undefined;
  /** Those that rules name themselves and that may be used. */
  fixed: Set<bigint>;
}

/** Used unless others are asked for: every server can hold them, one that stores 32 bits included. */
const IDS_OF_EVERY_SERVER: IdRange = { from: 1n, to: 2n ** 31n - 1n };

export function idsNeeded(rules: readonly Rule[]): bigint {
  return BigInt(rules.length + 1) + BigInt(fixedIdsOf(rules).size) + NEIGHBOUR_SEARCH_IDS;
}

/** The ids that rules name themselves, such as the largest. */
function fixedIdsOf(rules: readonly Rule[]): Set<bigint> {
  return new Set(rules.flatMap(({ fixedIds = [] }) => fixedIds));
}

/**
 * Draws the ids of a run. They begin at a random place, so that two runs hardly ever meet in a wide range: a plant that
 * is there already gets another response.
 *
 * @param range the ids that may be used, at least as many as {@link idsNeeded} says; undefined: any
 */
export function drawIds(rules: readonly Rule[], range?: IdRange): RunIds {
  const { from, to } = range ?? IDS_OF_EVERY_SERVER;
  const named = fixedIdsOf(rules);
  const fresh: bigint[] = [];
  // With far more bits than there are places, no place is noticeably likelier than another.
  const random = BigInt(`0x${randomBytes(16).toString('hex')}`);
  let id = from + (random % (to - from + 2n - idsNeeded(rules)));
  for (; fresh.length < rules.length + 1; id++) if (!named.has(id)) fresh.push(id);
  const fixed = new Set([...named].filter(each => range === undefined || (each >= from && each <= to)));
  // Below 2^53 no two integers are one double, so without a range a place beyond that goes with the first id.
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
