import { createHash } from 'node:crypto';
import type { PlantRevision } from '../../core/commit/plant-revision.ts';
import { StoreRejected } from '../../core/commit/store-errors.ts';

/**
 * What a store held at a time. Equal digests mean equal revisions.
 *
 * The time is the one of the newest revision, so copies of a store have the same seal. If a later
 * revision has an earlier time, because a clock was set back, the digest differs.
 */
export interface Seal {
  /** Covers the revisions that were recorded until then, in milliseconds since 1970 UTC. */
  until: number;
  plants: number;
  revisions: number;
  /** The SHA-256 of {@link SealDigest}: 64 hexadecimal digits in lower case. */
  digest: string;
  /** Of the revisions after this time, the seal covers only these keys, each as `ID:REVISION`. */
  newest?: { after: number; keys: Set<string> } | undefined;
}

/** Which revisions a digest covers, such as those of an earlier seal; by default all. */
interface Coverage extends Partial<Pick<Seal, 'until' | 'newest'>> {
  /** Later revisions are covered too, and listed. */
  isListing?: boolean;
}

/** Characters that one call hashes. A call for each line would take more time. */
const CHUNK_LENGTH = 64 * 1024;
/** Maximum of listed revisions. With more, the seal lists none, and fits its own backup only. */
const LISTED_MAX = 100_000;

/**
 * The SHA-256 of all revisions in the order of ids, then revisions, the same for every engine.
 *
 * It hashes the content, not the checksums: another content with the same 64 bits can be computed.
 * The input is UTF-8 text, one line for each revision, a JSON array as JSON.stringify writes it.
 * Its elements are id (as text), revision, name, tag or null, recorded_at and recorded_by:
 *
 *     ["9007199254740993",1,"Monstera deliciosa","houseplant",1767225600000,1]
 */
export class SealDigest {
  readonly #hash = createHash('sha256');
  readonly #newest: NonNullable<Seal['newest']>;
  readonly #isListing: boolean;
  readonly #summary = { until: 0, plants: 0, revisions: 0 };
  #lines = '';
  #lastId: bigint | undefined;

  constructor({ until = Number.POSITIVE_INFINITY, newest, isListing = false }: Coverage = {}) {
    this.#newest = newest ?? { after: until, keys: new Set() };
    this.#isListing = isListing;
  }

  /** @param each must be intact */
  add({ plant: { id, name, tag }, revision, recordedAt, recordedBy }: PlantRevision): void {
    if (recordedAt > this.#newest.after && !this.#isListed(`${id}:${revision}`)) return;
    if (id !== this.#lastId) this.#summary.plants++;
    this.#lastId = id;
    this.#summary.revisions++;
    if (recordedAt > this.#summary.until) this.#summary.until = recordedAt;
    this.#lines += `${JSON.stringify([String(id), revision, name, tag ?? null, recordedAt, recordedBy])}\n`;
    if (this.#lines.length < CHUNK_LENGTH) return;
    this.#hash.update(this.#lines);
    this.#lines = '';
  }

  seal(): Seal {
    this.#hash.update(this.#lines);
    // The given `until` is not used: it may come from a damaged row that only some reads find.
    const { size } = this.#newest.keys;
    const newest = this.#isListing && size > 0 && size <= LISTED_MAX ? this.#newest : undefined;
    return { ...this.#summary, digest: this.#hash.digest('hex'), newest };
  }

  #isListed(key: string): boolean {
    const { keys } = this.#newest;
    if (this.#isListing && keys.size <= LISTED_MAX) keys.add(key);
    return this.#isListing || keys.has(key);
  }
}

const LINE = /^plant-store seal 1 (\S+) (\d+) plants (\d+) revisions sha256:([0-9a-f]{64})$/;
const NEWEST = /^after (-?\d+) only ([-:\d ]+)$/;

/** The seal as one line, without the newest revisions. */
export function sealLine({ until, plants, revisions, digest }: Seal): string {
  const time = new Date(until).toISOString();
  return `plant-store seal 1 ${time} ${plants} plants ${revisions} revisions sha256:${digest}`;
}

/** The seal as a file: its line, and a line for the newest revisions. */
export function sealText(seal: Seal): string {
  const { newest } = seal;
  const listed = newest ? `after ${newest.after} only ${[...newest.keys].join(' ')}\n` : '';
  return `${sealLine(seal)}\n${listed}`;
}

/** @param text of {@link sealLine} or {@link sealText} @throws {StoreRejected} */
export function parseSeal(text: string): Seal {
  const [first = '', ...rest] = text.trim().split('\n');
  const [, time = '', plants, revisions, digest] = LINE.exec(first.trim().replaceAll(/\s+/g, ' ')) ?? [];
  const until = Date.parse(time);
  if (digest === undefined || Number.isNaN(until)) {
    throw new StoreRejected(
      'the seal must be a line as `verify` prints it: plant-store seal 1 TIME N plants N revisions sha256:64 digits from 0 to f',
    );
  }
  const seal = { until, plants: Number(plants), revisions: Number(revisions), digest };
  if (rest.length === 0) return seal;
  const [, after, keys] = NEWEST.exec(rest.join('\n')) ?? [];
  if (keys === undefined) throw new StoreRejected('line 2 of the file of the seal is malformed');
  return { ...seal, newest: { after: Number(after), keys: new Set(keys.split(' ')) } };
}

/** How the content that an earlier seal covers has changed. @returns undefined if it has not */
export function differenceOf(earlier: Seal, now: Seal): string | undefined {
  const isEqual = (['digest', 'plants', 'revisions'] as const).every(each => now[each] === earlier[each]);
  if (isEqual) return undefined;
  const [then, intact] = [earlier, now].map(({ revisions }) => revisions.toLocaleString('en'));
  return `the seal has ${then} revisions, and the store has ${intact} intact ones up to that time`;
}
