import { createHash } from 'node:crypto';
import type { PlantRevision } from '../core/commit/plant-revision.ts';

/**
 * The content of a store at a time. Equal digests mean equal revisions.
 *
 * The time is that of the newest revision, so copies of a store have the same seal. If a clock was
 * set back and a later revision has an earlier time, the digest differs.
 */
export interface Seal {
  /** The seal covers the revisions until this time, in milliseconds since 1970 UTC. */
  until: number;
  plants: number;
  revisions: number;
  /** The SHA-256 of {@link SealDigest}: 64 hexadecimal digits in lower case. */
  digest: string;
  /** The seal covers only these revisions after this time, each as `ID:REVISION`. */
  newest?: { after: number; keys: Set<string> } | undefined;
}

/** Which revisions of later times a digest covers, besides all revisions until a time. */
type LaterRevisions =
  | { kind: 'none' }
  /** The revisions with these keys, each as `ID:REVISION`. */
  | { kind: 'some'; keys: ReadonlySet<string> }
  /** All later revisions. The digest collects their keys, up to {@link LISTED_MAX}. */
  | { kind: 'listed'; keys: Set<string> };

/** Characters that one call hashes. A call for each line would take more time. */
const CHUNK_LENGTH = 64 * 1024;
/** Maximum of listed revisions. With more, the seal lists none, and fits only its own backup. */
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
  readonly #until: number;
  readonly #later: LaterRevisions;
  readonly #summary = { until: 0, plants: 0, revisions: 0 };
  #lines = '';
  #lastId: bigint | undefined;

  private constructor(until: number, later: LaterRevisions) {
    this.#until = until;
    this.#later = later;
  }

  /** Covers every revision. The seal fits only a store with exactly these. */
  static ofAll(): SealDigest {
    return SealDigest.until(Number.POSITIVE_INFINITY);
  }

  /** Covers the revisions that were recorded until this time. */
  static until(time: number): SealDigest {
    return new SealDigest(time, { kind: 'none' });
  }

  /**
   * Covers every revision, and lists the revisions after this time in the seal. So the seal still
   * fits the store when the store gets further revisions of the same times.
   */
  static ofAllListingAfter(time: number): SealDigest {
    return new SealDigest(time, { kind: 'listed', keys: new Set() });
  }

  /** Covers the revisions of an earlier seal. Equal seals show that the store still has them. */
  static ofEarlier({ until, newest }: Seal): SealDigest {
    if (newest === undefined) return SealDigest.until(until);
    return new SealDigest(newest.after, { kind: 'some', keys: newest.keys });
  }

  /** Adds a revision, if it is covered. @param each must be intact */
  add({ plant: { id, name, tag }, revision, recordedAt, recordedBy }: PlantRevision): void {
    if (recordedAt > this.#until) {
      const key = `${id}:${revision}`;
      if (!this.#coversLater(key)) return;
      this.#list(key);
    }
    if (id !== this.#lastId) this.#summary.plants++;
    this.#lastId = id;
    this.#summary.revisions++;
    if (recordedAt > this.#summary.until) this.#summary.until = recordedAt;
    this.#lines += `${JSON.stringify([String(id), revision, name, tag ?? null, recordedAt, recordedBy])}\n`;
    if (this.#lines.length < CHUNK_LENGTH) return;
    this.#hash.update(this.#lines);
    this.#lines = '';
  }

  /** Ends the digest. The object must not be used afterwards. */
  seal(): Seal {
    this.#hash.update(this.#lines);
    // `until` is that of the newest revision read. The time of the constructor may come from a
    // damaged row, which only some reads find.
    return { ...this.#summary, digest: this.#hash.digest('hex'), newest: this.#newest() };
  }

  #coversLater(key: string): boolean {
    switch (this.#later.kind) {
      case 'none':
        return false;
      case 'some':
        return this.#later.keys.has(key);
      case 'listed':
        return true;
    }
  }

  #list(key: string): void {
    if (this.#later.kind === 'listed' && this.#later.keys.size <= LISTED_MAX) this.#later.keys.add(key);
  }

  #newest(): Seal['newest'] {
    if (this.#later.kind !== 'listed') return undefined;
    const { keys } = this.#later;
    return keys.size > 0 && keys.size <= LISTED_MAX ? { after: this.#until, keys } : undefined;
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

/** A text is not a seal as `verify` or `backup` writes it. */
export class MalformedSeal extends Error {
  override name = 'MalformedSeal';
}

/** Parses a text of {@link sealLine} or {@link sealText}. @throws {MalformedSeal} */
export function parseSeal(text: string): Seal {
  const [first = '', ...rest] = text.trim().split('\n');
  const [, time = '', plants, revisions, digest] = LINE.exec(first.trim().replaceAll(/\s+/g, ' ')) ?? [];
  const until = Date.parse(time);
  if (digest === undefined || Number.isNaN(until)) {
    throw new MalformedSeal(
      'the seal must be a line as `verify` prints it: plant-store seal 1 TIME N plants N revisions sha256:64 digits from 0 to f',
    );
  }
  const seal = { until, plants: Number(plants), revisions: Number(revisions), digest };
  if (rest.length === 0) return seal;
  const [, after, keys] = NEWEST.exec(rest.join('\n')) ?? [];
  if (keys === undefined) throw new MalformedSeal('line 2 of the file of the seal is malformed');
  return { ...seal, newest: { after: Number(after), keys: new Set(keys.split(' ')) } };
}

/** Whether a store still holds the revisions of an earlier seal. */
export type SealComparison =
  | { kind: 'fits' }
  /** The store has an intact revision of the time of the seal. Others are lost, changed or added. */
  | { kind: 'changed'; counts: string }
  /** It has none. The seal is of another store, or the newest revisions are lost. */
  | { kind: 'otherTime'; counts: string };

/** @param now the seal of the revisions that the earlier one covers */
export function comparisonOf(earlier: Seal, now: Seal): SealComparison {
  const isEqual = (['digest', 'plants', 'revisions'] as const).every(each => now[each] === earlier[each]);
  if (isEqual) return { kind: 'fits' };
  const [then, intact] = [earlier, now].map(({ revisions }) => revisions.toLocaleString('en'));
  return {
    // The time of a seal is that of its newest revision.
    kind: now.until === earlier.until ? 'changed' : 'otherTime',
    counts: `the seal has ${then} revisions, and the store has ${intact} intact ones up to that time`,
  };
}
