import { randomBytes } from 'node:crypto';
import { plantsUrl } from '../../client/transport.ts';
import { NEIGHBOUR_SEARCH_IDS } from './limits.ts';
import type { Rule, Target } from './rule.ts';

/** @param baseUrl without the `/plants` */
export function makeTarget(
  baseUrl: URL,
  token: string,
  { fresh, neighbours }: RunIds,
  stop: AbortSignal,
): Target {
  const unused = fresh.values();
  const nextId = () => {
    const { value } = unused.next();
    if (value === undefined) throw new Error('a check has taken more than one id');
    return value;
  };
  return { plantsUrl: plantsUrl(baseUrl), token, stop, nextId, neighbours };
}

/** Ids from the first to the last, both included. */
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
}

/** Used unless others are asked for: every server can hold them, one that stores 32 bits included. */
const IDS_OF_EVERY_SERVER: IdRange = { from: 1n, to: 2n ** 31n - 1n };

/** How many ids a range must hold for these rules. */
export function idsNeeded(rules: readonly Rule[]): bigint {
  return BigInt(rules.length + 1) + BigInt(fixedIdsOf(rules).size) + NEIGHBOUR_SEARCH_IDS;
}

/** The ids that rules name themselves, such as the largest. */
export function fixedIdsOf(rules: readonly Rule[]): Set<bigint> {
  return new Set(rules.flatMap(({ fixedIds = [] }) => fixedIds));
}

/**
 * Draws the ids of a run. They begin at a random place, so that two runs hardly ever meet in a wide range: a plant that
 * is there already gets another response.
 *
 * @param range the ids that may be used, at least as many as {@link idsNeeded} says; undefined: any
 */
export function drawIds(rules: readonly Rule[], range: IdRange | undefined): RunIds {
  const { from, to } = range ?? IDS_OF_EVERY_SERVER;
  const fixed = fixedIdsOf(rules);
  const fresh: bigint[] = [];
  let id = from + randomBelow(to - from + 2n - idsNeeded(rules));
  for (; fresh.length < rules.length + 1; id++) if (!fixed.has(id)) fresh.push(id);
  // Below 2^53 no two integers are one double, so without a range a place beyond that goes with the first id.
  const start = range === undefined ? 2n ** 53n + 4n * fresh[0]! : id;
  const end = range === undefined ? start + NEIGHBOUR_SEARCH_IDS : to;
  return { fresh, neighbours: findNeighbours(start, end, fixed) };
}

function findNeighbours(start: bigint, end: bigint, fixed: Set<bigint>): [bigint, bigint] | undefined {
  for (let id = start; id < end && id < start + NEIGHBOUR_SEARCH_IDS; id++) {
    if (Number(id) === Number(id + 1n) && !fixed.has(id) && !fixed.has(id + 1n)) return [id, id + 1n];
  }
  return undefined;
}

/** @param bound above 0, below 2^65 */
function randomBelow(bound: bigint): bigint {
  // With twice the bits of the bound, no number below it is noticeably likelier than another.
  return BigInt(`0x${randomBytes(16).toString('hex')}`) % bound;
}
