import { readFile } from 'node:fs/promises';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { isProtected, type OpenIdSettings } from './open-id-settings.ts';

const READ_INTERVAL_MS = 3_600_000;
/** Shortest interval between two reads that tokens cause. Failed reads count. */
const READ_ON_DEMAND_INTERVAL_MS = 30_000;
/** Keys stay valid for this long after they were read, so the provider may be away. */
const KEYS_AGE_MAX_MS = 24 * 3_600_000;
const FETCH_TIMEOUT_MS = 5_000;
const DOCUMENT_BYTES_MAX = 64 * 1024;
const MISSING = 'access tokens get 503 responses, because the keys of the OpenID provider cannot be read';

/** No keys are known, or only outdated ones. A token may be valid and cannot be checked. */
export class KeysUnavailable extends Error {}

/**
 * The public keys of an OpenID provider. Begins to read them, and reads them again every hour.
 *
 * @param onError is called when the keys cannot be read; the last ones stay in use
 */
export function openProviderKeys(settings: OpenIdSettings, onError: (cause: unknown) => void) {
  let keys = createLocalJWKSet({ keys: [] });
  /** When the last successful read ended; ms since 1970, because a suspended machine counts. */
  let readAt = 0;
  /** Since when reads fail. */
  let failingSince: Date | undefined;
  /** When a token last caused a read; ms, on the monotonic clock. */
  let demandedAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  const read = (): Promise<void> => {
    reading ??= readKeys(settings)
      .then(found => {
        const usable = createLocalJWKSet(found);
        if (found.keys.length === 0) throw new Error('the provider has no keys');
        keys = usable;
        readAt = Date.now();
        failingSince = undefined;
      })
      .catch(cause => {
        failingSince ??= new Date();
        onError(cause);
      })
      .finally(() => (reading = undefined));
    return reading;
  };
  /** Waits for a read in flight, or starts one unless tokens caused one a short time ago. */
  const readOnDemand = async (): Promise<void> => {
    const now = performance.now();
    if (reading === undefined && now - demandedAt < READ_ON_DEMAND_INTERVAL_MS) return;
    if (reading === undefined) demandedAt = now;
    await read();
  };
  const areKnown = (): boolean => Date.now() - readAt < KEYS_AGE_MAX_MS;
  void read();
  const timer = setInterval(read, READ_INTERVAL_MS);
  return {
    /** For the operator; undefined if keys are known, or the first read has not ended. */
    fault: () => (areKnown() ? undefined : failingSince && `${MISSING} since ${failingSince.toISOString()}`),
    /** Finds the key of a token. @throws {KeysUnavailable} */
    keyOf: (async (header, token) => {
      if (!areKnown()) await readOnDemand();
      if (!areKnown()) throw new KeysUnavailable('no keys of the OpenID provider are known');
      return await keys(header, token).catch(async error => {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        await readOnDemand();
        // The token may have a new key.
        if (failingSince !== undefined) throw new KeysUnavailable('the key of the token is unknown');
        return await keys(header, token);
      });
    }) satisfies JWTVerifyGetKey,
    [Symbol.dispose]: () => clearInterval(timer),
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
    headers: { Accept: 'application/json' },
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
