import { readFile } from 'node:fs/promises';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Clock } from '../contract/clock.ts';
import { isProtected, type OpenIdSettings } from './open-id-settings.ts';
import { hashToken } from './token.ts';

const READ_INTERVAL_MS = 3_600_000;
/** Shortest interval between two reads that tokens cause. Failed reads count. */
const READ_ON_DEMAND_INTERVAL_MS = 30_000;
/** Unknown keys that are remembered, with 200 bytes each. */
const UNKNOWN_KEYS_MAX = 10_000;
/** Keys stay valid for this long after they were read, so the provider may be away. */
const KEYS_AGE_MAX_MS = 24 * 3_600_000;
const FETCH_TIMEOUT_MS = 5_000;
const DOCUMENT_BYTES_MAX = 64 * 1024;
const MISSING = 'access tokens get 503 responses, because the keys of the OpenID provider cannot be read';

/** The key of a token may exist at the provider and is not known here, so the token is not checked. */
export class KeysUnavailable extends Error {}

/**
 * The public keys of an OpenID provider. Begins to read them, and reads them again every hour.
 *
 * The key of a token can be unknown because it is new. Such a token is rejected only after the keys
 * were read again since the key was first seen. Before that, {@link KeysUnavailable} is thrown.
 *
 * @param onError is called when the keys cannot be read; the last ones stay in use
 */
export function openProviderKeys(settings: OpenIdSettings, clock: Clock, onError: (cause: unknown) => void) {
  let keys = createLocalJWKSet({ keys: [] });
  /** The `kid` of each. */
  let keyIds: ReadonlySet<unknown> = new Set();
  let readsBegun = 0;
  /** The last successful read: which one it was, and its end in ms since 1970. */
  let lastRead = { number: 0, endedAt: 0 };
  /** Since when reads fail. */
  let failingSince: Date | undefined;
  /** When a token last caused a read; ms, on the monotonic clock. */
  let demandedAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;
  /** How many reads had begun when a token with this unknown key first arrived. The oldest is first. */
  const unknownSince = new Map<string, number>();

  const read = (): Promise<void> => {
    if (reading !== undefined) return reading;
    const number = ++readsBegun;
    reading = readKeys(settings)
      .then(found => {
        const usable = createLocalJWKSet(found);
        if (found.keys.length === 0) throw new Error('the provider has no keys');
        keys = usable;
        keyIds = new Set(found.keys.map(({ kid }) => kid));
        // A suspended machine counts.
        lastRead = { number, endedAt: clock.wallNow() };
        failingSince = undefined;
      })
      .catch(cause => {
        failingSince ??= new Date(clock.wallNow());
        onError(cause);
      })
      .finally(() => (reading = undefined));
    return reading;
  };
  /** Waits for a read in flight, or starts one. @throws if it fails, or tokens caused one a short time ago */
  const readOnDemand = async (failure: string): Promise<void> => {
    if (reading === undefined) {
      if (clock.now() - demandedAt < READ_ON_DEMAND_INTERVAL_MS) throw new KeysUnavailable(failure);
      demandedAt = clock.now();
    }
    await read();
    if (failingSince !== undefined) throw new KeysUnavailable(failure);
  };
  const areKnown = (): boolean => clock.wallNow() - lastRead.endedAt < KEYS_AGE_MAX_MS;
  const keyOf: JWTVerifyGetKey = async (header, token) => {
    const { kid = '' } = header;
    const keyId = hashToken(kid);
    const since = unknownSince.get(keyId) ?? readsBegun;
    if (!areKnown()) await readOnDemand('no keys of the OpenID provider are known');
    for (;;) {
      try {
        return await keys(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || keyIds.has(kid)) throw error;
        // The provider may publish the key later, so the next token with it counts as its first.
        unknownSince.delete(keyId);
        if (lastRead.number > since) throw error;
        if (unknownSince.size >= UNKNOWN_KEYS_MAX) unknownSince.delete(unknownSince.keys().next().value!);
        unknownSince.set(keyId, since);
        await readOnDemand('the key of the token is unknown, and the keys cannot be read again now');
      }
    }
  };
  void read();
  let timer: Disposable;
  const readLater = (): void => {
    timer = clock.setTimer(() => {
      void read();
      readLater();
    }, READ_INTERVAL_MS);
  };
  readLater();
  return {
    /** For the operator; undefined if keys are known, or the first read has not ended. */
    fault: () => (areKnown() ? undefined : failingSince && `${MISSING} since ${failingSince.toISOString()}`),
    /** Finds the key of a token. @throws {KeysUnavailable} */
    keyOf,
    [Symbol.dispose]: () => timer[Symbol.dispose](),
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
