import { hash } from 'node:crypto';
import { type Clock, isRecent, type Moment, momentOf } from '../../core/clock.ts';
import type { CredentialValidator } from '../../core/extension-points.ts';
import type { ReceivedRequest } from '../../core/request.ts';
import type { NewStoredToken, StoredToken } from '../../core/tokens/stored-token.ts';
import { hashToken } from '../../core/tokens/token.ts';
import type { TokenCache } from '../../core/tokens/token-cache.ts';
import type { OpenidSettings } from './openid-settings.ts';
import { KeysUnavailable, openProviderKeys } from './provider-keys.ts';
import { failureText, shownMessage, type ValidatedSubject, validatedSubject } from './validated-subject.ts';

/** A validated token is validated again after this time, because the provider may withdraw a key. */
const VALIDATED_MAX_MS = 60_000;
const VALIDATED_TOKENS_MAX = 10_000;
/** A token that was not accepted is not validated again for this time: repetitions are cheap. */
const NOT_ACCEPTED_MAX_MS = 1_000;
/** With this many valid tokens, new subjects are rejected: all tokens are in memory. */
const STORED_TOKENS_MAX = 10_000;
const FULL = `the store has ${STORED_TOKENS_MAX} valid tokens`;

/** For this time, operators see that a row could not be stored. */
const UNSTORED_SHOWN_MS = 10_000;
const UNSTORED =
  'access tokens of new subjects get 503 responses, because the service cannot store a row for each';
/** For this time, operators see that a subject can have no row. Its client may send rarely. */
const CONFLICT_SHOWN_MS = 3_600_000;
const CONFLICT =
  'an access token gets 401 responses, because a token made with `token create` has the label of its subject';

/** The message to the client of a valid token whose subject can have no row. */
const SUBJECT_UNSTORABLE =
  'the access token is valid, but the service cannot add its subject; tell the operator of the service';
const UNCHECKED = 'the access token cannot be checked now; send this plant again shortly';
const ADVICE = 'the log of the service has the cause; docs/operate/openid.md says what to do';

/** The result of validating an access token. The log gets the causes. */
type ValidationResult =
  /** `storedHash` is in the row of the subject. */
  | { kind: 'subject'; storedHash: string }
  | { kind: 'rejected'; cause: unknown }
  /** The token is valid, but its subject can have no row. */
  | { kind: 'unstorable'; cause: unknown }
  | { kind: 'unchecked'; cause: unknown };

/** The row of a subject cannot be stored, and a retry does not help. */
class SubjectUnstorable extends Error {}

interface Store {
  createToken(token: NewStoredToken): Promise<StoredToken | undefined>;
}

/**
 * JWT access tokens of an OpenID provider (RFC 9068, RFC 8725).
 *
 * Each subject has a row in the token table, made at its first use. Revocation, rate limit and last
 * use are those of the row. So a validated token only leads to the hash of its row.
 *
 * @param store stores rows; `engines/tables/token-table.ts` documents it
 * @param onFailure makes a function that logs the causes of a failure
 */
export function openAccessTokens(
  settings: OpenidSettings,
  clock: Clock,
  tokens: TokenCache,
  store: Store,
  onFailure: (message: string) => (cause: unknown, request?: ReceivedRequest) => void,
): CredentialValidator & Disposable {
  const logRejection = onFailure('an access token was not accepted');
  const logUnchecked = onFailure('an access token could not be checked, or its subject not be stored');
  const option = settings.jwks === undefined ? 'issuer' : 'jwks';
  const onUnread = onFailure(`the keys of the OpenID provider cannot be read; check --oidc-${option}`);
  const keys = openProviderKeys(settings, clock, onUnread);
  const rows = new SubjectRows(tokens, store, clock);
  /** Results by the SHA-256 of the token. In one map, guesses would displace validated tokens. */
  const validated = new Map<string, CachedResult>();
  const notAccepted = new Map<string, CachedResult>();
  const pending = new Map<string, Promise<ValidationResult>>();
  const validateNow = async (token: string): Promise<CachedResult> => {
    const cachedFor = (ageMaxMs: number, result: ValidationResult): CachedResult => ({
      result,
      endedAt: momentOf(clock),
      ageMaxMs,
    });
    let subject: ValidatedSubject;
    try {
      subject = await validatedSubject(token, keys, settings, clock);
    } catch (failure) {
      const cause = new Error(shownMessage(failureText(failure as Error, token, settings)));
      const kind = failure instanceof KeysUnavailable ? 'unchecked' : 'rejected';
      return cachedFor(NOT_ACCEPTED_MAX_MS, { kind, cause });
    }
    try {
      const storedHash = rowHashOf(subject.label);
      await rows.store(storedHash, subject.label);
      const ageMaxMs = Math.min(subject.expiresAt - clock.wallNow(), VALIDATED_MAX_MS);
      return cachedFor(ageMaxMs, { kind: 'subject', storedHash });
    } catch (cause) {
      const kind = cause instanceof SubjectUnstorable ? 'unstorable' : 'unchecked';
      return cachedFor(NOT_ACCEPTED_MAX_MS, { kind, cause });
    }
  };
  const cached = (bearerHash: string): ValidationResult | undefined => {
    const found = validated.get(bearerHash) ?? notAccepted.get(bearerHash);
    return found && isRecent(clock, found.endedAt, found.ageMaxMs) ? found.result : undefined;
  };
  /** Validates an access token and makes the row of its subject. It never throws. */
  const validate = async (token: string): Promise<ValidationResult> => {
    const bearerHash = hashToken(token);
    const known = cached(bearerHash);
    if (known && (known.kind !== 'subject' || tokens.get(known.storedHash))) return known;
    return pending.getOrInsertComputed(bearerHash, async () => {
      const found = await validateNow(token);
      const cache = found.result.kind === 'subject' ? validated : notAccepted;
      if (cache.size >= VALIDATED_TOKENS_MAX) cache.clear();
      for (const each of [validated, notAccepted]) each.delete(bearerHash);
      cache.set(bearerHash, found);
      pending.delete(bearerHash);
      return found.result;
    });
  };
  return {
    async validate(token, request) {
      const found = await validate(token);
      switch (found.kind) {
        case 'subject':
          return { kind: 'valid', storedHash: found.storedHash };
        // Each log has its own rate limit, so guesses do not hide why valid tokens get errors.
        case 'rejected':
          logRejection(found.cause, request);
          return { kind: 'rejected' };
        case 'unstorable':
          logUnchecked(found.cause, request);
          return { kind: 'rejected', message: SUBJECT_UNSTORABLE };
        case 'unchecked':
          logUnchecked(found.cause, request);
          return { kind: 'unchecked', message: UNCHECKED };
      }
    },
    storedHashOf(bearerHash) {
      const found = cached(bearerHash);
      return found?.kind === 'subject' ? found.storedHash : undefined;
    },
    /** Logs the rejection if the row is that of a subject. */
    onRejected(storedHash, request) {
      const { label = '' } = tokens.get(storedHash) ?? {};
      if (rowHashOf(label) === storedHash) logRejection(new Error(`${label} is revoked`), request);
    },
    /** Reports missing keys before missing rows: without keys, all valid tokens get errors. */
    warning() {
      const fault = keys.fault() ?? rows.fault();
      return fault === undefined ? undefined : { name: 'access tokens', fault, advice: ADVICE };
    },
    [Symbol.dispose]: () => keys[Symbol.dispose](),
  };
}

/**
 * The hash in the row of a subject. A label contains a space, and a bearer token never does. So no
 * client can send a token with this hash.
 */
function rowHashOf(label: string): string {
  return hash('sha256', label, 'hex');
}

interface CachedResult {
  result: ValidationResult;
  endedAt: Moment;
  ageMaxMs: number;
}

/**
 * Stores the rows of subjects one at a time. On SQLite, each is a commit between those of plants.
 */
class SubjectRows {
  readonly #tokens: TokenCache;
  readonly #store: Store;
  readonly #clock: Clock;
  /** Settles when the store has tried the row that was requested last. */
  #latest: Promise<void> = Promise.resolve();
  /** The latest failure. `at` is in ms on the monotonic clock. */
  #lastFailure: { cause: unknown; at: number } | undefined;
  /** When another token last had the label of a subject; ms, on the monotonic clock. */
  #conflictedAt: number | undefined;

  constructor(tokens: TokenCache, store: Store, clock: Clock) {
    this.#tokens = tokens;
    this.#store = store;
    this.#clock = clock;
  }

  /** Stores the row of a subject, if it has none. @throws {SubjectUnstorable} */
  async store(storedHash: string, label: string): Promise<void> {
    if (this.#tokens.get(storedHash)) return;
    const since = this.#clock.now();
    const stored = this.#latest.then(() => this.#storeNow(storedHash, label, since));
    this.#latest = stored.catch(() => {});
    await stored;
    if (this.#tokens.get(storedHash)) return;
    // The store is full. Another instance may have made the row a moment ago.
    const found = await this.#tokens.lookUp(storedHash);
    if (found.kind === 'storeUnavailable') throw new Error('the token table cannot be read');
    if (!this.#tokens.get(storedHash)) throw new SubjectUnstorable(`${label} is new, and ${FULL}`);
  }

  /** @param since when the row was requested; ms, on the monotonic clock */
  async #storeNow(storedHash: string, label: string, since: number): Promise<void> {
    if (this.#tokens.get(storedHash) || this.#isFull()) return;
    // A call that waited during a failure gets the same failure, instead of its own wait for the
    // store.
    if (this.#lastFailure !== undefined && since < this.#lastFailure.at) throw this.#lastFailure.cause;
    const row = await this.#createRow(storedHash, label);
    if (row === undefined) {
      this.#conflictedAt = this.#clock.now();
      throw new SubjectUnstorable(`a token made with \`token create\` has the label ${label}`);
    }
    this.#tokens.add(row);
  }

  /**
   * If another instance has made the row, the store returns that row, which may be revoked.
   *
   * @returns undefined if another token has the label
   */
  async #createRow(storedHash: string, label: string): Promise<StoredToken | undefined> {
    try {
      const createdAt = this.#clock.wallNow();
      return await this.#store.createToken({ hash: storedHash, label, createdAt, expiresAt: null });
    } catch (cause) {
      this.#lastFailure = { cause, at: this.#clock.now() };
      throw cause;
    }
  }

  #isFull(): boolean {
    return this.#tokens.validCount >= STORED_TOKENS_MAX;
  }

  /** Why new subjects get errors; undefined: they get none. */
  fault(): string | undefined {
    if (this.#isWithin(UNSTORED_SHOWN_MS, this.#lastFailure?.at)) return UNSTORED;
    if (this.#isFull()) return `access tokens of new subjects get 401 responses, because ${FULL}`;
    return this.#isWithin(CONFLICT_SHOWN_MS, this.#conflictedAt) ? CONFLICT : undefined;
  }

  #isWithin(timeMs: number, at: number | undefined): boolean {
    return at !== undefined && this.#clock.now() - at < timeMs;
  }
}
