import { type JWTVerifyGetKey, jwtVerify } from 'jose';
import { withoutTokens } from '../contract/bearer-token.ts';
import { readJson, readToEnd } from '../contract/json-reader.ts';
import { SUBJECT_LABEL_LENGTH_MAX, TOKEN_EXPIRY_MS_MAX } from '../contract/limits.ts';
import { isTokenLabel, type NewStoredToken, type StoredToken } from '../contract/stored-token.ts';
import type { TracedRequest } from '../contract/trace-context.ts';
import type { OpenIdSettings } from './open-id-settings.ts';
import { KeysUnavailable, openProviderKeys } from './provider-keys.ts';
import { hashToken } from './token.ts';
import type { TokenCache } from './token-cache.ts';

/** RFC 8725 section 3.1. A symmetric algorithm or `none` is never accepted. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'];
/** How far the clocks of the provider and the service may differ. */
const CLOCK_SKEW_SECONDS = 30;
const ACCESS_TOKEN_LENGTH_MAX = 8 * 1024;
/** A verified token is verified again after this time, because the provider may withdraw a key. */
const VERIFIED_MS_MAX = 60_000;
const VERIFIED_TOKENS_MAX = 10_000;
/** A rejected token is not verified again when it leaves the fast path for its response. */
const REJECTED_MS_MAX = 1_000;
/** With more tokens in the store, new subjects are rejected: every service holds all in memory. */
const STORED_TOKENS_MAX = 10_000;

/** How long operators see that a row could not be stored. */
const UNSTORED_SHOWN_MS = 10_000;
const UNSTORED =
  'access tokens of new subjects get 503 responses, because the service cannot store a row for each';

interface Verification {
  /** The hash of the row of the subject; undefined: rejected; `unavailable`: not checked. */
  subjectHash: string | undefined | 'unavailable';
  /** Why it was rejected or could not be checked. */
  failure?: unknown;
  /** Ms since 1970. */
  validUntil: number;
}

interface Store {
  createToken(token: NewStoredToken): Promise<StoredToken | undefined>;
}

export type AccessTokens = ReturnType<typeof openAccessTokens>;

/**
 * JWT access tokens of an OpenID provider (RFC 9068, RFC 8725).
 *
 * Each subject has a row in the token table, made at its first use. Its hash is that of its label,
 * which is no token, so nobody can present it. Revocation, rate limit and last use are those of the
 * row. So a verified token is only a way to the hash of its row.
 *
 * @param store stores rows; `store/operator-tables.ts` documents it
 * @param onFailure makes a function that logs the causes of a failure
 */
export function openAccessTokens(
  settings: OpenIdSettings,
  tokens: TokenCache,
  store: Store,
  onFailure: (message: string) => (cause: unknown, request?: TracedRequest) => void,
) {
  const onRejected = onFailure('an access token was not accepted');
  const onUnchecked = onFailure('an access token could not be checked, or its subject not be stored');
  const option = settings.jwks === undefined ? 'issuer' : 'jwks';
  const onUnread = onFailure(`the keys of the OpenID provider cannot be read; check --oidc-${option}`);
  const keys = openProviderKeys(settings, onUnread);
  const rows = subjectRows(tokens, store);
  /** By the SHA-256 of the token. Rejected ones are apart, so that guesses push out no valid one. */
  const [verified, rejected] = [new Map<string, Verification>(), new Map<string, Verification>()];
  const pending = new Map<string, Promise<Verification>>();
  const verifyNow = async (token: string): Promise<Verification> => {
    let isGenuine = false;
    try {
      const { label, expiresAt } = await verifiedSubject(token, keys.keyOf, settings);
      isGenuine = true;
      const subjectHash = hashToken(label);
      await rows.store(subjectHash, label);
      return { subjectHash, validUntil: Math.min(expiresAt, Date.now() + VERIFIED_MS_MAX) };
    } catch (cause) {
      const failure = isGenuine ? cause : new Error(shownMessage((cause as Error).message));
      const subjectHash = isGenuine || cause instanceof KeysUnavailable ? 'unavailable' : undefined;
      return { subjectHash, failure, validUntil: Date.now() + REJECTED_MS_MAX };
    }
  };
  const cached = (tokenHash: string): Verification | undefined => {
    const verification = verified.get(tokenHash) ?? rejected.get(tokenHash);
    return verification && Date.now() < verification.validUntil ? verification : undefined;
  };
  /** Verifies an access token and makes the row of its subject. It never throws. */
  const verify = async (token: string): Promise<Verification> => {
    const tokenHash = hashToken(token);
    const known = cached(tokenHash);
    if (known && (known.failure || tokens.get(known.subjectHash!))) return known;
    return pending.getOrInsertComputed(tokenHash, async () => {
      const verification = await verifyNow(token);
      const cache = verification.failure === undefined ? verified : rejected;
      if (cache.size >= VERIFIED_TOKENS_MAX) cache.clear();
      for (const each of [verified, rejected]) each.delete(tokenHash);
      cache.set(tokenHash, verification);
      pending.delete(tokenHash);
      return verification;
    });
  };
  return {
    verify,
    /** As {@link verify}, but only from the cache; undefined: not in it, or rejected. */
    cachedSubjectHash: (tokenHash: string) => cached(tokenHash)?.subjectHash,
    /** For a request that gets its response now: the log gets the failed check. */
    async subjectHash(token: string, request: TracedRequest): Promise<Verification['subjectHash']> {
      const { subjectHash, failure } = await verify(token);
      // Each has its own limit of lines: guesses do not hide why good tokens get 503.
      if (failure !== undefined) (subjectHash === undefined ? onRejected : onUnchecked)(failure, request);
      return subjectHash;
    },
    /** Logs the rejection if the row is that of a subject. */
    onRevoked(hash: string, request: TracedRequest): void {
      const { label = '' } = tokens.get(hash) ?? {};
      if (hashToken(label) === hash) onRejected(new Error(`${label} is revoked`), request);
    },
    /** Why valid tokens get 503 responses, for operators; undefined: they do not. */
    fault(): string | undefined {
      return rows.failedAgo() < UNSTORED_SHOWN_MS ? UNSTORED : keys.fault();
    },
    [Symbol.dispose]: () => keys[Symbol.dispose](),
  };
}

/** Stores the rows one at a time: on SQLite, each is a commit between those of plants. */
function subjectRows(tokens: TokenCache, store: Store) {
  let latest: Promise<unknown> = Promise.resolve();
  /** Of the latest failure; `at` is in ms, on the monotonic clock. */
  let failed = { cause: undefined as unknown, at: Number.NEGATIVE_INFINITY };
  const storeNow = async (hash: string, label: string, since: number): Promise<void> => {
    if (tokens.get(hash)) return;
    // Those that waited while the store failed do not each wait for it.
    if (since < failed.at) throw failed.cause;
    if (tokens.size >= STORED_TOKENS_MAX)
      throw new Error(`a new subject is rejected: the store has ${STORED_TOKENS_MAX} tokens`);
    // Another instance may have made the row. Then it is returned as it is, perhaps revoked.
    const row = await store.createToken({ hash, label, createdAt: Date.now(), expiresAt: null });
    if (row === undefined) throw new Error(`another token has the label ${label}`);
    tokens.add(row);
  };
  return {
    async store(hash: string, label: string): Promise<void> {
      if (tokens.get(hash)) return;
      const since = performance.now();
      latest = latest.catch(() => {}).then(() => storeNow(hash, label, since));
      try {
        await latest;
      } catch (cause) {
        failed = { cause, at: performance.now() };
        throw cause;
      }
    },
    /** Ms since the latest failure. */
    failedAgo: () => performance.now() - failed.at,
  };
}

/** @throws with the failed check */
async function verifiedSubject(token: string, keyOf: JWTVerifyGetKey, settings: OpenIdSettings) {
  if (token.length > ACCESS_TOKEN_LENGTH_MAX) throw new Error('it is too long');
  const { issuer, audience, scope, type: typ } = settings;
  const { payload, protectedHeader } = await jwtVerify(token, keyOf, {
    ...{ algorithms: ALGORITHMS, issuer, audience, typ, clockTolerance: CLOCK_SKEW_SECONDS },
    requiredClaims: ['exp', 'sub'],
  });
  if (protectedHeader.crit !== undefined) throw new Error('"crit" is not supported');
  for (const part of token.split('.', 2)) rejectRepeatedMembers(Buffer.from(part, 'base64url').toString());
  const { exp, iss, sub, scope: scopes, scp, roles } = payload;
  const label = `${iss} ${sub}`;
  if (typeof sub !== 'string' || !isTokenLabel(label, SUBJECT_LABEL_LENGTH_MAX))
    throw new Error('"sub" is too long or not readable');
  if (exp! > TOKEN_EXPIRY_MS_MAX / 1000) throw new Error('"exp" is later than any date');
  // `scope` is a text (RFC 8693 section 4.2); some providers send a list.
  const granted = [scopes, scp, roles].flatMap(each => (typeof each === 'string' ? each.split(' ') : each));
  if (scope !== undefined && !granted.includes(scope))
    throw new Error(`"scope", "scp" and "roles" do not contain ${scope}`);
  return { label, expiresAt: exp! * 1000 };
}

/** JSON.parse takes the last of repeated members. @throws if a name is repeated, or it is no JSON */
function rejectRepeatedMembers(text: string): void {
  const names = new Set<string>();
  const reading = readJson(text, name => {
    if (names.has(name)) throw new Error(`${JSON.stringify(name)} is repeated`);
    names.add(name);
  });
  if (readToEnd(reading) !== undefined) throw new Error('a part is not JSON');
}

/**
 * The messages of jose quote the token of anybody. Also a copy, so that the token can be freed: a
 * slice of a long text would hold it.
 */
function shownMessage(message: string): string {
  const text = Buffer.from(message.slice(0, 200))
    .toString()
    .replace(/[^ -~]/g, '?');
  return withoutTokens(text);
}
