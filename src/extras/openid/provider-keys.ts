import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { type Clock, isRecent, type Moment, momentOf, repeat } from '../../core/clock.ts';
import { isProtected, type OpenidSettings } from './openid-settings.ts';

const READ_INTERVAL_MS = 3_600_000;
/** Shortest interval between two reads that tokens cause, also after a failed read. */
const READ_ON_DEMAND_INTERVAL_MS = 30_000;
/** Maximum of unknown keys in memory, with 200 bytes each. */
const UNKNOWN_KEYS_MAX = 10_000;
/** An unknown key without a token for this long is forgotten. */
const UNKNOWN_KEY_MAX_MS = 5 * 60_000;
/** Keys stay valid for this long after they were read, since the provider may be unavailable. */
const KEYS_AGE_MAX_MS = 24 * 3_600_000;
const FETCH_TIMEOUT_MS = 5_000;
const DOCUMENT_MAX_BYTES = 64 * 1024;
const MISSING = 'access tokens get 503 responses, because the keys of the OpenID provider cannot be read';

/** The key of a token is unknown here, but may exist at the provider. So it cannot be validated. */
export class KeysUnavailable extends Error {}

/** Reads keys, and finds the key of a token. A simulation has its own. */
export interface KeySource {
  read: (settings: OpenidSettings) => Promise<JSONWebKeySet>;
  keySet: (keys: JSONWebKeySet) => JWTVerifyGetKey;
}

export const KEY_SOURCE: KeySource = { read: readKeys, keySet: createLocalJWKSet };

/** The public keys of an OpenID provider. */
export interface ProviderKeys extends Disposable {
  /** Finds the key of a token. @throws {KeysUnavailable} */
  keyOf: JWTVerifyGetKey;
  /**
   * Reads the keys because one does not fit its token.
   *
   * @throws {KeysUnavailable} if the read fails, or may not start yet
   */
  readAgain(): Promise<void>;
  /** The fault for operators; undefined if keys are known, or the first read has not ended. */
  fault(): string | undefined;
}

/** A successful read of the keys. */
interface KeyRead {
  number: number;
  /** When it ended. */
  endedAt: Moment;
  /** The `kid` of each key. */
  keyIds: ReadonlySet<unknown>;
}

/**
 * Begins to read the keys of an OpenID provider, and reads them again every hour.
 *
 * The key of a token can be unknown because it is new. Such a token is rejected only after the keys
 * were read again since the key was first seen. Before that, {@link KeysUnavailable} is thrown.
 * Later tokens with this key are rejected until the keys may be read again. Then they are read
 * first, because the provider may have published the key since.
 *
 * @param onError is called when the keys cannot be read; the last ones stay in use
 */
export function openProviderKeys(
  settings: OpenidSettings,
  clock: Clock,
  onError: (cause: unknown) => void,
  source = KEY_SOURCE,
): ProviderKeys {
  let keys = source.keySet({ keys: [] });
  let readsBegun = 0;
  let lastRead: KeyRead | undefined;
  /** When reads began to fail; undefined: the last read succeeded, or none has ended. */
  let failingSince: Date | undefined;
  /** When a token last caused a read; ms, on the monotonic clock. */
  let demandedAt: number | undefined;
  let reading: Promise<void> | undefined;
  const unknown = new UnknownKeys(clock);

  const read = (): Promise<void> => {
    if (reading !== undefined) return reading;
    const number = ++readsBegun;
    reading = source
      .read(settings)
      .then(found => {
        const usable = source.keySet(found);
        if (found.keys.length === 0) throw new Error('the provider has no keys');
        keys = usable;
        lastRead = {
          number,
          endedAt: momentOf(clock),
          keyIds: new Set(found.keys.map(({ kid }) => kid)),
        };
        failingSince = undefined;
      })
      .catch(cause => {
        failingSince ??= new Date(clock.wallNow());
        onError(cause);
      })
      .finally(() => (reading = undefined));
    return reading;
  };
  const mayRead = (): boolean =>
    reading !== undefined ||
    demandedAt === undefined ||
    clock.now() - demandedAt >= READ_ON_DEMAND_INTERVAL_MS;
  /**
   * Waits for a read in flight, or starts one.
   *
   * @throws {KeysUnavailable} if the read fails, or may not start yet
   */
  const readOnDemand = async (failure: string): Promise<void> => {
    if (!mayRead()) throw new KeysUnavailable(failure);
    if (reading === undefined) demandedAt = clock.now();
    await read();
    if (failingSince !== undefined) throw new KeysUnavailable(failure);
  };
  /** Whether the keys of the last read may still be used. */
  const areCurrent = (): boolean =>
    lastRead !== undefined && isRecent(clock, lastRead.endedAt, KEYS_AGE_MAX_MS);
  const keyOf: JWTVerifyGetKey = async (header, token) => {
    const { kid = '' } = header;
    if (typeof kid !== 'string') throw new errors.JWKSNoMatchingKey();
    const keyId = hash('sha256', kid, 'hex');
    const since = unknown.since(keyId) ?? readsBegun;
    if (!areCurrent()) await readOnDemand('no keys of the OpenID provider are known');
    for (;;) {
      try {
        const key = await keys(header, token);
        unknown.forget(keyId);
        return key;
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || lastRead?.keyIds.has(kid)) throw error;
        unknown.add(keyId, since);
        const wereReadSince = lastRead !== undefined && lastRead.number > since;
        if (wereReadSince && failingSince === undefined && !mayRead()) throw error;
        await readOnDemand('the key of the token is unknown, and the keys cannot be read again now');
      }
    }
  };
  void read();
  const timer = repeat(clock, () => void read(), READ_INTERVAL_MS);
  return {
    fault() {
      if (areCurrent() || failingSince === undefined) return undefined;
      return `${MISSING} since ${failingSince.toISOString()}`;
    },
    keyOf,
    readAgain: () => readOnDemand('the keys cannot be read again now'),
    [Symbol.dispose]: () => timer[Symbol.dispose](),
  };
}

/** The unknown keys of tokens that arrived a short time ago. */
class UnknownKeys {
  readonly #clock: Clock;
  /** By key id. `lastAt` is in ms on the monotonic clock. The oldest is first. */
  readonly #seen = new Map<string, { since: number; lastAt: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * How many reads had begun when a token with this key first arrived.
   *
   * @returns undefined if there was no token with this key for a while
   */
  since(keyId: string): number | undefined {
    const found = this.#seen.get(keyId);
    return found && this.#clock.now() - found.lastAt < UNKNOWN_KEY_MAX_MS ? found.since : undefined;
  }

  /** Forgets a key that was found. The provider may remove it, and publish it again as new. */
  forget(keyId: string): void {
    this.#seen.delete(keyId);
  }

  /** Adds a token with this key. It is now the newest. */
  add(keyId: string, since: number): void {
    this.#seen.delete(keyId);
    if (this.#seen.size >= UNKNOWN_KEYS_MAX) this.#seen.delete(this.#seen.keys().next().value!);
    this.#seen.set(keyId, { since, lastAt: this.#clock.now() });
  }
}

/** Reads the keys from the configured source, or from the address in the metadata of the issuer. */
async function readKeys({ issuer, jwks }: OpenidSettings): Promise<JSONWebKeySet> {
  if (jwks !== undefined) return await readDocument(jwks);
  // OpenID Connect Discovery 1.0 section 4.1; RFC 8414 section 5 keeps this address.
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const { issuer: named, jwks_uri: address } = await readDocument(url);
  if (named !== issuer) throw new Error(`${url} names another issuer: ${JSON.stringify(named)}`);
  if (!isProtected(address)) throw new Error(`${url} names no https address of keys in jwks_uri`);
  return await readDocument(address);
}

/** @param source a URL or a file, with JSON */
async function readDocument(source: string) {
  if (!/^https?:/.test(source)) return JSON.parse(await readFile(source, 'utf8'));
  const response = await fetch(source, {
    redirect: 'error',
    // RFC 7517 section 8.5.2. Kubernetes responds with 406 if the type of its keys is missing here.
    headers: { Accept: 'application/json, application/jwk-set+json' },
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
  });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > DOCUMENT_MAX_BYTES) throw new Error(`${source} is longer than ${DOCUMENT_MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  if (!response.ok) throw new Error(`${source} responded with status ${response.status}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}
