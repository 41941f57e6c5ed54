/**
 * Every stored revision has a checksum of 64 bits. It detects a flipped bit anywhere between the
 * parsed request and the reader. SQLite has no checksums itself.
 *
 * The checksum consists of two hashes of 32 bits, `high` and `low`. A step adds one word of 32 bits
 * to the state of a hash. Damage of one word always changes both hashes, because different words
 * lead to different states, and later steps never make these states equal. Other damage stays
 * undetected once in 2^64 cases. All constants are random.
 *
 * SHA-256 of `crypto.hash` and sums of bigints take several times as long. `zlib.crc32` would miss
 * damage once in 2^32 cases.
 */
import type { NewPlant } from '../contract/plant.ts';
import type { IntactRevision, PlantRevision } from './plant-revision.ts';

function highStep(state: number, word: number): number {
  const product = Math.imul(state ^ word, 0xb5297a4d);
  return product ^ (product >>> 15);
}

function lowStep(state: number, word: number): number {
  const product = Math.imul(state ^ word, 0x68e31da5);
  return product ^ (product >>> 13);
}

/** Converts between an integer of 64 bits and its two words. */
const int64 = new DataView(new ArrayBuffer(8));

function joined(high: number, low: number): bigint {
  int64.setInt32(0, high);
  int64.setInt32(4, low);
  return int64.getBigInt64(0);
}

/** A word between name and tag that equals no character, so an absent and an empty tag differ. */
const TAG_FOLLOWS = 0x10000;

/** The part of the checksum that is known, and computed, as soon as a request is parsed. */
export function contentChecksum({ id, name, tag }: NewPlant): bigint {
  int64.setBigInt64(0, id);
  let high = highStep(highStep(0x10f82929, int64.getInt32(0)), int64.getInt32(4));
  let low = lowStep(lowStep(0x11fbe825, int64.getInt32(0)), int64.getInt32(4));
  for (let index = 0; index < name.length; index++) {
    const character = name.charCodeAt(index);
    high = highStep(high, character);
    low = lowStep(low, character);
  }
  if (tag !== undefined) {
    high = highStep(high, TAG_FOLLOWS);
    low = lowStep(low, TAG_FOLLOWS);
    // A second loop, because joining the texts would cost as much as hashing them.
    for (let index = 0; index < tag.length; index++) {
      const character = tag.charCodeAt(index);
      high = highStep(high, character);
      low = lowStep(low, character);
    }
  }
  return joined(high, low);
}

type Numbers = Pick<PlantRevision, 'revision' | 'recordedAt' | 'recordedBy'>;

/** @returns a signed integer, since both engines store those only */
export function revisionChecksum(content: bigint, { revision, recordedAt, recordedBy }: Numbers): bigint {
  int64.setBigInt64(0, content);
  let high = int64.getInt32(0);
  let low = int64.getInt32(4);
  for (const number of [revision, recordedAt, recordedBy]) {
    // A number can have more than 32 bits, as a time has, and `^` uses only the lower 32.
    const upperBits = Math.floor(number / 2 ** 32);
    high = highStep(highStep(high, upperBits), number);
    low = lowStep(lowStep(low, upperBits), number);
  }
  return joined(high, low);
}

/** Whether a revision that was read is the one that was written. */
export function isIntact(stored: PlantRevision): stored is IntactRevision {
  return stored.checksum === revisionChecksum(contentChecksum(stored.plant), stored);
}
