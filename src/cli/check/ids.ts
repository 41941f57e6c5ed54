import { randomBytes } from 'node:crypto';
import { Failure } from '../output/failure.ts';
import type { Rule } from './rules.ts';

export interface IdRange {
  from: bigint;
  to: bigint;
}

export interface RunIds {
  /** The first contact and each rule that is about no id take one of these ascending ids. */
  fresh: bigint[];
  /** The permitted ones of the ids that rules are about, such as the largest int64. */
  ofRules: bigint[];
}

/** Every server can store the ids of this default range, also one with 32-bit ids. */
const IDS_OF_EVERY_SERVER: IdRange = { from: 1n, to: 2n ** 31n - 1n };

/**
 * Draws the ids from a random place, since a stored id would change the response.
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
  // 128 random bits for a range of at most 64 bits make the modulo almost uniform.
  const random = BigInt(`0x${randomBytes(16).toString('hex')}`);
  const fresh: bigint[] = [];
  for (let id = from + (random % (count - needed + 1n)); fresh.length < freshCount; id++)
    if (!named.includes(id)) fresh.push(id);
  return { fresh, ofRules };
}

export function shownIds({ fresh, ofRules }: RunIds): string {
  const others = ofRules.length > 0 ? `, and ${ofRules.join(', ')}, which rules are about` : '';
  const count = fresh.length + ofRules.length;
  return `up to ${count} plants that nobody can delete: ids ${fresh[0]} to ${fresh.at(-1)}${others}`;
}
