import { readFile } from 'node:fs/promises';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { type Clock, repeat } from '../../core/clock.ts';
import { hashToken } from '../../core/tokens/token.ts';
import { isProtected, type OpenIdSettings } from './open-id-settings.ts';

const READ_INTERVAL_MS = 3_600_000;
/** Shortest interval between two reads that tokens cause. Failed reads count. */
const READ_ON_DEMAND_INTERVAL_MS = 30_000;
/** Maximum of unknown keys in memory, with 200 bytes each. */
const UNKNOWN_KEYS_MAX = 10_000;
/** An unknown key without a token for this long is forgotten. */
const UNKNOWN_KEY_MS_MAX = 5 * 60_000;
/** Keys stay valid for this long after they were read, since the provider may be unavailable. */
const KEYS_AGE_MAX_MS = 24 * 3_600_000;
const FETCH_TIMEOUT_MS = 5_000;
const DOCUMENT_BYTES_MAX = 64 * 1024;
const MISSING = 'access tokens get 503 responses, because the keys of the OpenID provider cannot be read';

/**
 * The key of a token is unknown here, but may exist at the provider. So the token is not verified.
 */
export class KeysUnavailable extends Error {}

/** Reads keys, and finds the key of a token. A simulation has its own. */
export interface KeySource {
  read: (settings: OpenIdSettings) => Promise<JSONWebKeySet>;
  keySet: (keys: JSONWebKeySet) => JWTVerifyGetKey;
}

export const KEY_SOURCE: KeySource = { read: readKeys, keySet: createLocalJWKSet };

export type ProviderKeys = ReturnType<typeof openProviderKeys>;

/**
 * The public keys of an OpenID provider. Begins to read them, and reads them again every hour.
 *
 * The key of a token can be unknown because it is new. Such a token is rejected only after the keys
 * were read again since the key was first seen. Before that, {@link KeysUnavailable} is thrown.
 * Later tokens with this key are rejected until the keys may be read again. Then they are read
 * first, because the provider may have published the key since.
 *
 * @param onError is called when the keys cannot be read; the last ones stay in use
 */
export function openProviderKeys(
  settings: OpenIdSettings,
  clock: Clock,
  onError: (cause: unknown) => void,
  source = KEY_SOURCE,
) {
  let keys = source.keySet({ keys: [] });
  /** The `kid` of each key. */
  let keyIds: ReadonlySet<unknown> = new Set();
  let readsBegun = 0;
  /** The last successful read: its number, and its end by both clocks. */
  let lastRead = { number: 0, endedAt: Number.NEGATIVE_INFINITY, endedAtWall: Number.NEGATIVE_INFINITY };
  /** The time since which reads fail. */
  let failingSince: Date | undefined;
  /** When a token last caused a read; ms, on the monotonic clock. */
  let demandedAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;
  const unknown = unknownKeys(clock);

  const read = (): Promise<void> => {
    if (reading !== undefined) return reading;
    const number = ++readsBegun;
    reading = source
      .read(settings)
      .then(found => {
        const usable = source.keySet(found);
        if (found.keys.length === 0) throw new Error('the provider has no keys');
        keys = usable;
        keyIds = new Set(found.keys.map(({ kid }) => kid));
        lastRead = { number, endedAt: clock.now(), endedAtWall: clock.wallNow() };
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
    reading !== undefined || clock.now() - demandedAt >= READ_ON_DEMAND_INTERVAL_MS;
  /** Waits for a read in flight, or starts one. @throws if it fails, or if no read may start yet */
  const readOnDemand = async (failure: string): Promise<void> => {
    if (!mayRead()) throw new KeysUnavailable(failure);
    if (reading === undefined) demandedAt = clock.now();
    await read();
    if (failingSince !== undefined) throw new KeysUnavailable(failure);
  };
  /** Compares both clocks: one stops while the machine is suspended, and the other may be set. */
  const areKnown = (): boolean =>
    clock.now() - lastRead.endedAt < KEYS_AGE_MAX_MS &&
    Math.abs(clock.wallNow() - lastRead.endedAtWall) < KEYS_AGE_MAX_MS;
  const keyOf: JWTVerifyGetKey = async (header, token) => {
    const { kid = '' } = header;
    if (typeof kid !== 'string') throw new errors.JWKSNoMatchingKey();
    const keyId = hashToken(kid);
    const since = unknown.since(keyId) ?? readsBegun;
    if (!areKnown()) await readOnDemand('no keys of the OpenID provider are known');
    for (;;) {
      try {
        const key = await keys(header, token);
        unknown.forget(keyId);
        return key;
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || keyIds.has(kid)) throw error;
        unknown.add(keyId, since);
        if (lastRead.number > since && failingSince === undefined && !mayRead()) throw error;
        await readOnDemand('the key of the token is unknown, and the keys cannot be read again now');
      }
    }
  };
  void read();
  const timer = repeat(clock, () => void read(), READ_INTERVAL_MS);
  return {
    /** The fault for operators; undefined if keys are known, or the first read has not ended. */
    fault: () => (areKnown() ? undefined : failingSince && `${MISSING} since ${failingSince.toISOString()}`),
    /** Finds the key of a token. @throws {KeysUnavailable} */
    keyOf,
    /**
     * Reads the keys because one does not fit its token.
     *
     * @throws if it fails, or may not start yet
     */
    readAgain: () => readOnDemand('the keys cannot be read again now'),
    [Symbol.dispose]: () => timer[Symbol.dispose](),
  };
}

/** The unknown keys of tokens that arrived a short time ago. */
function unknownKeys(clock: Clock) {
  /**
   * The number of reads that had begun when a token with this key first arrived, and the time of
   * the last such token in ms on the monotonic clock. The oldest is first.
   */
  const seen = new Map<string, { since: number; lastAt: number }>();
  return {
    /** @returns undefined if there was no token with this key for a while */
    since(keyId: string): number | undefined {
      const found = seen.get(keyId);
      return found && clock.now() - found.lastAt < UNKNOWN_KEY_MS_MAX ? found.since : undefined;
    },
    /**
     * Forgets a key that was found. The provider may remove it and publish it again as a new key.
     */
    forget(keyId: string): void {
      seen.delete(keyId);
    },
    add(keyId: string, since: number): void {
      seen.delete(keyId);
      if (seen.size >= UNKNOWN_KEYS_MAX) seen.delete(seen.keys().next().value!);
      seen.set(keyId, { since, lastAt: clock.now() });
    },
  };
}

async function readKeys({ issuer, jwks }: OpenIdSettings): Promise<JSONWebKeySet> {
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
  const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS);
  const response = await fetch(source, {
    redirect: 'error',
    // RFC 7517 section 8.5.2. Kubernetes responds with 406 if the type of its keys is missing here.
    headers: { Accept: 'application/json, application/jwk-set+json' },
    signal,
  });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > DOCUMENT_BYTES_MAX) throw new Error(`${source} is longer than ${DOCUMENT_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  if (!response.ok) throw new Error(`${source} responded with status ${response.status}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}
