import { randomBytes } from 'node:crypto';
import { Failure } from '../../src/cli/shared/failure.ts';
import type { Rule } from './rules.ts';

export interface IdRange {
  from: bigint;
  to: bigint;
}

export interface RunIds {
  /** Ascending ids for the first contact, and for each rule that is about no particular id. */
  fresh: bigint[];
  /** The permitted ids that rules are about, such as the largest int64. */
  ofRules: bigint[];
}

/** The default range. Even a server with 32-bit ids can store these ids. */
const IDS_OF_EVERY_SERVER: IdRange = { from: 1n, to: 2n ** 31n - 1n };

/**
 * Draws ids from a random start, since an id of an earlier run would change the response.
 *
 * @param permitted the only ids that may be sent; undefined: the default range and all ids of rules
 */
export function drawIds(rules: readonly Rule[], permitted?: IdRange): RunIds {
  const { from, to } = permitted ?? IDS_OF_EVERY_SERVER;
  const named = rules.map(({ plantId }) => plantId).filter(id => id !== undefined);
  const ofRules = named.filter(id => permitted === undefined || (id >= from && id <= to));
  const freshCount = rules.length - named.length + 1;
  const needed = BigInt(freshCount + ofRules.length);
  const count = to - from + 1n;
  if (count < needed) {
    const problem = `--ids ${from}..${to} contains ${count} ids, but the rules need ${needed}`;
    throw new Failure(`${problem}; give a wider range`, 2);
  }
  // The modulo is almost uniform: 128 random bits for a range of at most 64 bits.
  const random = BigInt(`0x${randomBytes(16).toString('hex')}`);
  const fresh: bigint[] = [];
  for (let id = from + (random % (count - needed + 1n)); fresh.length < freshCount; id++)
    if (!named.includes(id)) fresh.push(id);
  return { fresh, ofRules };
}

/** Makes the text for the user about the plants that a run stores. */
export function shownIds({ fresh, ofRules }: RunIds): string {
  const others = ofRules.length > 0 ? `, and ${ofRules.join(', ')}, which rules are about` : '';
  const count = fresh.length + ofRules.length;
  return `up to ${count} plants that nobody can delete: ids ${fresh[0]} to ${fresh.at(-1)}${others}`;
}
