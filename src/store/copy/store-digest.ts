import { createHash } from 'node:crypto';
import type { StoredToken } from '../../contract/stored-token.ts';
import type { PlantRevision } from '../plant-store.ts';

/** Summary of the content of a store. Equal summaries mean equal content. */
export interface StoreSummary {
  revisions: number;
  plants: number;
  tokens: number;
  /** The SHA-256 of {@link StoreDigest}: 64 hexadecimal digits in lower case. */
  digest: string;
}

/** Characters that one call hashes. A call for each line would cost more than the hash itself. */
const CHUNK_LENGTH = 64 * 1024;

/**
 * The SHA-256 of every row of a store, the same for every engine.
 *
 * The input is UTF-8 text, one line for each row. A line is a JSON array as JSON.stringify writes
 * it, followed by a line feed. First comes every revision, in the order of ids, then revisions:
 *
 *     ["plant","9007199254740993",1,"Monstera deliciosa","houseplant",1767225600000,1]
 *
 * These are id (as text), revision, name, tag (null when there is none), recorded_at and
 * recorded_by. Then comes every token, in the order of ids:
 *
 *     ["token",1,"9f86d081…","nursery-app",1767225600000,null,null,"2026-01-01"]
 *
 * These are id, hash, label, created_at, expires_at, revoked_at and last_used_day. The only column
 * left out is token.change_number, because every store has its own numbers.
 */
export class StoreDigest {
  readonly #hash = createHash('sha256');
  #chunk = '';
  #revisions = 0;
  #plants = 0;
  #lastId: bigint | undefined;

  addRevision({ plant: { id, name, tag }, revision, recordedAt, recordedBy }: PlantRevision): void {
    this.#revisions++;
    if (id !== this.#lastId) this.#plants++;
    this.#lastId = id;
    this.#add(['plant', String(id), revision, name, tag ?? null, recordedAt, recordedBy]);
  }

  /** Ends the digest. @param tokens every token, in the order of ids */
  summary(tokens: readonly StoredToken[]): StoreSummary {
    for (const { id, hash, label, createdAt, expiresAt, revokedAt, lastUsedDay } of tokens) {
      this.#add(['token', id, hash, label, createdAt, expiresAt, revokedAt, lastUsedDay]);
    }
    const digest = this.#hash.update(this.#chunk).digest('hex');
    return { revisions: this.#revisions, plants: this.#plants, tokens: tokens.length, digest };
  }

  #add(row: (string | number | null)[]): void {
    this.#chunk += `${JSON.stringify(row)}\n`;
    if (this.#chunk.length < CHUNK_LENGTH) return;
    this.#hash.update(this.#chunk);
    this.#chunk = '';
  }
}
