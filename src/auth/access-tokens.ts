import { type JWTPayload, jwtVerify } from 'jose';
import { readJson, readToEnd } from '../contract/json-reader.ts';
import { SUBJECT_LABEL_LENGTH_MAX, TOKEN_EXPIRY_MS_MAX } from '../contract/limits.ts';
import { isTokenLabel, type NewStoredToken, type StoredToken } from '../contract/stored-token.ts';
import type { OpenIdSettings } from './open-id-settings.ts';
import { KeysUnavailable, ProviderKeys } from './provider-keys.ts';
import { hashToken, isJwt } from './token.ts';
import type { TokenCache } from './token-cache.ts';

/** RFC 8725 section 3.1. A symmetric algorithm or `none` is never accepted. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'];
/** How far the clocks of the provider and the service may differ. */
export const CLOCK_SKEW_SECONDS = 30;
/** Longest access token, in characters. */
export const ACCESS_TOKEN_LENGTH_MAX = 8 * 1024;
/** A verified token is verified again after this time, because the provider may withdraw a key. */
const VERIFIED_MS_MAX = 60_000;
const VERIFIED_TOKENS_MAX = 10_000;
/** Tokens that are verified at the same time. Each is held in memory. */
const VERIFICATIONS_MAX = 256;
/** With more tokens in the store, new subjects are rejected: every service holds all in memory. */
const STORED_TOKENS_MAX = 10_000;

/** Where subjects are stored; `store/operator-tables.ts` documents the method. */
interface SubjectStore {
  createToken(token: NewStoredToken): Promise<StoredToken | undefined>;
}

/**
 * JWT access tokens of an OpenID provider (RFC 9068, RFC 8725).
 *
 * Each subject has a row in the token table, made at its first use. Its hash is that of its label,
 * which is no token, so nobody can present it. Revocation, rate limit and last use are those of the
 * row. So a verified token is only a way to the hash of its row.
 */
export class AccessTokens {
  readonly #settings: OpenIdSettings;
  readonly #keys: ProviderKeys;
  readonly #tokens: TokenCache;
  readonly #store: SubjectStore;
  readonly #onRejected: (cause: unknown) => void;
  /** The hash of the row of each verified token, by the SHA-256 of the token, the oldest first. */
  readonly #verified = new Map<string, { subjectHash: string; validUntil: number }>();
  readonly #pending = new Map<string, Promise<string | undefined | 'unavailable'>>();
  /** Settles when the rows of all subjects so far are stored. */
  #stored: Promise<unknown> = Promise.resolve();

  /**
   * @param onRejected is called with the failed check of a token
   * @param onKeysError is called when the keys of the provider cannot be read
   */
  constructor(
    settings: OpenIdSettings,
    tokens: TokenCache,
    store: SubjectStore,
    onRejected: (cause: unknown) => void,
    onKeysError: (cause: unknown) => void,
  ) {
    this.#settings = settings;
    this.#keys = new ProviderKeys(settings, onKeysError);
    this.#tokens = tokens;
    this.#store = store;
    this.#onRejected = onRejected;
  }

  [Symbol.dispose](): void {
    this.#keys[Symbol.dispose]();
  }

  /** @returns the hash of the row of the subject, if the token was verified a short time ago */
  cachedSubjectHash(tokenHash: string): string | undefined {
    const verified = this.#verified.get(tokenHash);
    return verified !== undefined && Date.now() < verified.validUntil ? verified.subjectHash : undefined;
  }

  /**
   * Verifies an access token and makes the row of its subject.
   *
   * @returns the hash of the row, which the token cache knows; undefined if the token is rejected;
   *   `unavailable` if it cannot be checked now. It never throws.
   */
  async subjectHash(token: string): Promise<string | undefined | 'unavailable'> {
    const tokenHash = hashToken(token);
    const cached = this.cachedSubjectHash(tokenHash);
    if (cached !== undefined && this.#tokens.has(cached)) return cached;
    const pending = this.#pending.get(tokenHash);
    if (pending !== undefined) return pending;
    if (this.#pending.size >= VERIFICATIONS_MAX) return 'unavailable';
    const verification = this.#verify(token, tokenHash).finally(() => this.#pending.delete(tokenHash));
    this.#pending.set(tokenHash, verification);
    return verification;
  }

  async #verify(token: string, tokenHash: string): Promise<string | undefined | 'unavailable'> {
    let label: string;
    let expiresAt: number;
    try {
      const claims = await this.#claims(token);
      label = `${claims.iss} ${claims.sub}`;
      if (!isTokenLabel(label, SUBJECT_LABEL_LENGTH_MAX))
        throw new Error('"sub" is too long or not readable');
      expiresAt = claims.exp! * 1000;
    } catch (cause) {
      this.#onRejected(reasonOf(cause));
      return cause instanceof KeysUnavailable ? 'unavailable' : undefined;
    }
    try {
      const subjectHash = await this.#storedSubject(label);
      if (this.#verified.size >= VERIFIED_TOKENS_MAX)
        this.#verified.delete(this.#verified.keys().next().value!);
      // The entry moves to the end.
      this.#verified.delete(tokenHash);
      const validUntil = Math.min(expiresAt, Date.now() + VERIFIED_MS_MAX);
      this.#verified.set(tokenHash, { subjectHash, validUntil });
      return subjectHash;
    } catch (cause) {
      this.#onRejected(cause);
      return 'unavailable';
    }
  }

  /** @throws with the failed check */
  async #claims(token: string): Promise<JWTPayload> {
    if (token.length > ACCESS_TOKEN_LENGTH_MAX || !isJwt(token)) throw new Error('it is too long or no JWT');
    const { issuer, audience, scope, type: typ } = this.#settings;
    const [header, payload] = token.split('.');
    if (memberNames(header!).has('crit')) throw new Error('"crit" is not supported');
    const { payload: claims } = await jwtVerify(token, this.#keys.keyOf, {
      ...{ algorithms: ALGORITHMS, issuer, audience, typ, clockTolerance: CLOCK_SKEW_SECONDS },
      ...{ requiredClaims: ['exp', 'sub'], currentDate: new Date(Date.now()) },
    });
    memberNames(payload!);
    if (claims.exp! > TOKEN_EXPIRY_MS_MAX / 1000) throw new Error('"exp" is later than any date');
    const { scope: scopes, scp, roles } = claims;
    if (scope !== undefined && ![scopes, scp, roles].some(each => words(each).includes(scope)))
      throw new Error(`"scope", "scp" and "roles" do not contain ${scope}`);
    return claims;
  }

  /** One at a time: on SQLite, each row is a commit between those of plants. */
  #storedSubject(label: string): Promise<string> {
    const hash = hashToken(label);
    if (this.#tokens.has(hash)) return Promise.resolve(hash);
    const storing = this.#stored.then(async () => {
      if (this.#tokens.has(hash)) return hash;
      if (this.#tokens.size >= STORED_TOKENS_MAX)
        throw new Error(`a new subject is rejected: the store has ${STORED_TOKENS_MAX} tokens`);
      // Another instance may have made the row. Then it is returned as it is, perhaps revoked.
      const stored = await this.#store.createToken({ hash, label, createdAt: Date.now(), expiresAt: null });
      if (stored === undefined) throw new Error(`another token has the label ${label}`);
      this.#tokens.add(stored);
      return hash;
    });
    this.#stored = storing.catch(() => {});
    return storing;
  }
}

/** jose attaches the claims to its errors, which would fill the log. */
function reasonOf(cause: unknown): string {
  return (cause as Error).message;
}

/** JSON.parse takes the last of repeated members. @throws if a name is repeated, or it is no JSON */
function memberNames(part: string): Set<string> {
  const names = new Set<string>();
  const end = readJson(Buffer.from(part, 'base64url').toString(), name => {
    if (names.has(name)) throw new Error(`${JSON.stringify(name)} is repeated`);
    names.add(name);
  });
  if (readToEnd(end) !== undefined) throw new Error('a part is not JSON');
  return names;
}

/** `scope` is a text (RFC 8693 section 4.2); some providers send a list. */
function words(claim: unknown): unknown[] {
  if (Array.isArray(claim)) return claim;
  return typeof claim === 'string' ? claim.split(' ') : [];
}
