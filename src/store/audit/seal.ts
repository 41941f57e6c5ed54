import { createHash } from 'node:crypto';
import { type PlantRevision, StoreRejected } from '../plant-store.ts';

/**
 * What a store held at a time. Equal digests mean equal revisions.
 *
 * The time is the one of the newest revision, so copies of a store have the same seal. Revisions
 * that are added later have later times. If one has not, because a clock was set back, the digest
 * differs: it never hides a loss.
 */
export interface Seal {
  /** Covers the revisions that were recorded until then, in milliseconds since 1970 UTC. */
  until: number;
  plants: number;
  revisions: number;
  /** The SHA-256 of {@link SealDigest}: 64 hexadecimal digits in lower case. */
  digest: string;
  /** In the order of ids. With them, two seals show where the first difference is. */
  marks: Mark[];
  /** Of the revisions after this time, only these are covered, as `ID:REVISION`. */
  newest?: { after: number; keys: Set<string> } | undefined;
}

/** The number and the digest of the revisions up to this id, and with it. */
type Mark = Pick<Seal, 'revisions' | 'digest'> & { id: bigint };

export interface SealSettings {
  /** Later revisions are left out. Default: none. */
  until?: number;
  /** Its marks are repeated for the same ids, so that they can be compared. */
  earlier?: Seal | undefined;
  /** Later revisions are not left out, but listed. */
  isListing?: boolean;
}

/** Characters that one call hashes. A call for each line would cost more than the hash itself. */
const CHUNK_LENGTH = 64 * 1024;
/** A seal of more than twice as many plants has at least so many marks. */
const MARKS_MIN = 512;
/** A seal that would list more revisions lists none. It fits its own backup only. */
const LISTED_MAX = 100_000;

/**
 * The SHA-256 of all revisions in the order of ids, then revisions, the same for every engine.
 *
 * It hashes the content, not the checksums: another content with the same 64 bits can be computed.
 *
 * The input is UTF-8 text, one line for each revision. A line is a JSON array as JSON.stringify
 * writes it, followed by a line feed:
 *
 *     ["9007199254740993",1,"Monstera deliciosa","houseplant",1767225600000,1]
 *
 * These are id (as text), revision, name, tag (null when there is none), recorded_at and
 * recorded_by.
 */
export class SealDigest {
  readonly #hash = createHash('sha256');
  readonly #newest: NonNullable<Seal['newest']>;
  readonly #isListing: boolean;
  readonly #markIds: Iterator<bigint, undefined> | undefined;
  #nextMark: bigint | undefined;
  #lines: string[] = [];
  #length = 0;
  #revisions = 0;
  #plants = 0;
  #newestTime = 0;
  #lastId: bigint | undefined;
  #marks: Mark[] = [];
  #markInterval = 1;

  constructor({ until = Number.POSITIVE_INFINITY, earlier, isListing = false }: SealSettings = {}) {
    this.#newest = earlier?.newest ?? { after: until, keys: new Set() };
    this.#isListing = isListing;
    this.#markIds = earlier?.marks.map(({ id }) => id).values();
    this.#nextMark = this.#markIds?.next().value;
  }

  /** @param each must be intact */
  add({ plant: { id, name, tag }, revision, recordedAt, recordedBy }: PlantRevision): void {
    if (recordedAt > this.#newest.after && !this.#isListed(`${id}:${revision}`)) return;
    if (id !== this.#lastId) {
      if (this.#markIds !== undefined) this.#repeatMarks(id);
      else if (this.#revisions >= (this.#marks.at(-1)?.revisions ?? 0) + this.#markInterval) this.#mark();
      this.#plants++;
      this.#lastId = id;
    }
    this.#revisions++;
    if (recordedAt > this.#newestTime) this.#newestTime = recordedAt;
    const line = JSON.stringify([String(id), revision, name, tag ?? null, recordedAt, recordedBy]);
    this.#lines.push(line);
    this.#length += line.length;
    if (this.#length >= CHUNK_LENGTH) this.#update();
  }

  /** Ends the digest. */
  seal(): Seal {
    this.#repeatMarks();
    this.#update();
    // Not the limit, which may come from a damaged row that only some reads find.
    const [until, plants, revisions] = [this.#newestTime, this.#plants, this.#revisions];
    const { size } = this.#newest.keys;
    const newest = this.#isListing && size > 0 && size <= LISTED_MAX ? this.#newest : undefined;
    return { until, plants, revisions, digest: this.#hash.digest('hex'), marks: this.#marks, newest };
  }

  #isListed(key: string): boolean {
    const { keys } = this.#newest;
    if (this.#isListing && keys.size <= LISTED_MAX) keys.add(key);
    return this.#isListing || keys.has(key);
  }

  #mark(): void {
    if (this.#lastId !== undefined) this.#addMark(this.#lastId);
    if (this.#marks.length < 2 * MARKS_MIN) return;
    this.#marks = this.#marks.filter((_, index) => index % 2 === 1);
    this.#markInterval *= 2;
  }

  /** @param before the next id of the store; undefined at its end */
  #repeatMarks(before?: bigint): void {
    while (this.#nextMark !== undefined && (before === undefined || this.#nextMark < before)) {
      this.#addMark(this.#nextMark);
      this.#nextMark = this.#markIds!.next().value;
    }
  }

  #addMark(id: bigint): void {
    this.#update();
    this.#marks.push({ id, revisions: this.#revisions, digest: this.#hash.copy().digest('hex') });
  }

  #update(): void {
    // The last line ends with a line feed, too. To join texts is faster than to add each to a text.
    this.#hash.update([...this.#lines, ''].join('\n'));
    this.#lines = [];
    this.#length = 0;
  }
}

const LINE = /^plant-store seal 1 (\S+) (\d+) plants (\d+) revisions sha256:([0-9a-f]{64})$/;
const MARK = /^(-?\d+) (\d+) sha256:([0-9a-f]{64})$/;
const NEWEST = /^after (-?\d+) only ([-:\d ]+)$/;

/** The seal as one line, without its marks. */
export function sealLine({ until, plants, revisions, digest }: Seal): string {
  const time = new Date(until).toISOString();
  return `plant-store seal 1 ${time} ${plants} plants ${revisions} revisions sha256:${digest}`;
}

/** The seal as a file: its line, a line for each mark, and a line for the newest revisions. */
export function sealText(seal: Seal): string {
  const { newest } = seal;
  const marks = seal.marks.map(({ id, revisions, digest }) => `${id} ${revisions} sha256:${digest}`);
  const listed = newest ? [`after ${newest.after} only ${[...newest.keys].join(' ')}`] : [];
  return `${[sealLine(seal), ...marks, ...listed].join('\n')}\n`;
}

/** @param text of {@link sealLine} or {@link sealText} @throws {StoreRejected} */
export function parseSeal(text: string): Seal {
  const [first = '', ...lines] = text.trim().split('\n');
  const [, time = '', plants, revisions, digest] = LINE.exec(first.trim().replaceAll(/\s+/g, ' ')) ?? [];
  const until = Date.parse(time);
  if (digest === undefined || Number.isNaN(until)) {
    throw new StoreRejected(
      'the seal must be a line as `verify` prints it: plant-store seal 1 TIME N plants N revisions sha256:64 digits from 0 to f',
    );
  }
  const [, after, keys] = NEWEST.exec(lines.at(-1)?.trim() ?? '') ?? [];
  const newest = keys === undefined ? undefined : { after: Number(after), keys: new Set(keys.split(' ')) };
  if (newest !== undefined) lines.pop();
  const marks = lines.map((line, index): Mark => {
    const [, id, count, markDigest] = MARK.exec(line.trim()) ?? [];
    if (markDigest === undefined)
      throw new StoreRejected(`line ${index + 2} of the file of the seal is malformed`);
    return { id: BigInt(id!), revisions: Number(count), digest: markDigest };
  });
  return { until, plants: Number(plants), revisions: Number(revisions), digest, marks, newest };
}

/**
 * Tells how the content up to the time of an earlier seal has changed since.
 *
 * @param now of the same time, with marks for the same ids
 * @returns undefined if nothing has changed
 */
export function differenceOf(earlier: Seal, now: Seal): string | undefined {
  const isEqual = (['digest', 'plants', 'revisions'] as const).every(each => now[each] === earlier[each]);
  if (isEqual) return undefined;
  const [then, intact] = [earlier, now].map(({ revisions }) => revisions.toLocaleString('en'));
  const counts = `the seal has ${then} revisions, and the store has ${intact} intact ones up to that time`;
  if (earlier.marks.length === 0) return `${counts}; a line alone does not show where they differ`;
  const index = earlier.marks.findIndex(({ digest }, at) => digest !== now.marks[at]?.digest);
  const after = earlier.marks.at(index === -1 ? -1 : index - 1);
  const from = index === 0 ? 'the smallest id' : `id ${after!.id + 1n}`;
  const to = index === -1 ? 'the largest id' : `id ${earlier.marks[index]!.id}`;
  return `${counts}; the first difference is between ${from} and ${to}`;
}
