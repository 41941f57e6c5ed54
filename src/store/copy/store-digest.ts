import { createHash } from 'node:crypto';
import type { StoredToken } from '../../contract/stored-token.ts';
import type { PlantRevision } from '../plant-store.ts';

/** What a store holds, in four numbers: two stores with the same ones hold the same. */
export interface StoreSummary {
  revisions: number;
  plants: number;
  tokens: number;
  /** SHA-256, see {@link StoreDigest}, 64 hexadecimal digits in lower case. */
  digest: string;
}

/** Characters of lines that are hashed together: one call for each line costs more than the hash itself. */
const CHUNK_LENGTH = 64 * 1024;

/**
 * The SHA-256 over every row of a store, the same on every engine.
 *
 * Digested are lines in UTF-8, each a JSON array without spaces (as JSON.stringify writes it) and a line feed behind it:
 * first every revision in the order of ids, then revisions,
 *
 *     ["plant","9007199254740993",1,"Monstera deliciosa","houseplant",1767225600000,1]
 *
 * with its id as text, revision, name, tag (null for none, which `""` is not), recorded_at and recorded_by; then every
 * token in the order of ids,
 *
 *     ["token",1,"9f86d081…","nursery-app",1767225600000,null,null,"2026-01-01"]
 *
 * with its id, hash, label, created_at, expires_at, revoked_at and last_used_day. The one column left out is
 * token.change_number, which each store counts for itself.
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
