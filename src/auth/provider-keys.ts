import { readFile } from 'node:fs/promises';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { isProtected, type OpenIdSettings } from './open-id-settings.ts';

/** Interval of the background reads. */
const READ_INTERVAL_MS = 3_600_000;
/** Shortest interval between two reads that tokens cause. Failed reads count. */
export const READ_ON_DEMAND_INTERVAL_MS = 30_000;
/** Keys stay valid for this long after they were read, so the provider may be away. */
export const KEYS_AGE_MAX_MS = 24 * 3_600_000;
const FETCH_TIMEOUT_MS = 5_000;
/** Longest document of the provider. */
export const DOCUMENT_BYTES_MAX = 64 * 1024;

/** No keys are known, or only outdated ones. A token may be valid and cannot be checked. */
export class KeysUnavailable extends Error {}

/** The public keys of an OpenID provider. */
export class ProviderKeys {
  readonly #read: () => Promise<JSONWebKeySet>;
  readonly #onError: (cause: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #keys: JWTVerifyGetKey | undefined;
  /** When the last successful read ended; ms since 1970, because a suspended machine counts. */
  #readAt = 0;
  /** When a token last caused a read; ms, on the monotonic clock. */
  #demandedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /**
   * Begins to read the keys, and reads them again every hour.
   *
   * @param onError is called when the keys cannot be read; the last ones stay in use
   */
  constructor(settings: OpenIdSettings, onError: (cause: unknown) => void) {
    this.#read = () => readKeys(settings);
    this.#onError = onError;
    void this.#readNow();
    this.#timer = setInterval(() => void this.#readNow(), READ_INTERVAL_MS);
  }

  /** Finds the key of a token, as `jwtVerify` of jose calls it. @throws {KeysUnavailable} */
  readonly keyOf: JWTVerifyGetKey = async (header, token) => {
    if (!this.#areKnown) {
      await this.#readOnDemand();
      if (!this.#areKnown) throw new KeysUnavailable('no keys of the OpenID provider are known');
    }
    try {
      return await this.#keys!(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await this.#readOnDemand();
      return await this.#keys!(header, token);
    }
  };

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  get #areKnown(): boolean {
    return this.#keys !== undefined && Date.now() - this.#readAt < KEYS_AGE_MAX_MS;
  }

  /** Waits for a read in flight, or starts one unless tokens caused one a short time ago. */
  async #readOnDemand(): Promise<void> {
    const now = performance.now();
    if (this.#reading === undefined) {
      if (now - this.#demandedAt < READ_ON_DEMAND_INTERVAL_MS) return;
      this.#demandedAt = now;
    }
    await this.#readNow();
  }

  /** It never throws. */
  #readNow(): Promise<void> {
    this.#reading ??= this.#read()
      .then(keys => {
        this.#keys = createLocalJWKSet(keys);
        this.#readAt = Date.now();
      })
      .catch(this.#onError)
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }
}

async function readKeys({ issuer, jwks }: OpenIdSettings): Promise<JSONWebKeySet> {
  if (jwks !== undefined) return (await readDocument(jwks)) as JSONWebKeySet;
  // OpenID Connect Discovery 1.0 section 4.1; RFC 8414 section 5 keeps this address.
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const metadata = (await readDocument(url)) as { issuer?: unknown; jwks_uri?: unknown } | null;
  if (metadata?.issuer !== issuer)
    throw new Error(`${url} names another issuer: ${JSON.stringify(metadata?.issuer)}`);
  const { jwks_uri: address } = metadata;
  if (typeof address !== 'string' || !isProtected(address))
    throw new Error(`${url} names no https address of keys in jwks_uri`);
  return (await readDocument(address)) as JSONWebKeySet;
}

/** @param source a URL or a file, with JSON of at most {@link DOCUMENT_BYTES_MAX} */
async function readDocument(source: string): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of /^https?:/.test(source) ? await fetchBody(source) : [await readFile(source)]) {
    bytes += chunk.length;
    if (bytes > DOCUMENT_BYTES_MAX) throw new Error(`${source} is longer than ${DOCUMENT_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString());
}

async function fetchBody(url: string): Promise<AsyncIterable<Uint8Array> | Uint8Array[]> {
  const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS);
  const response = await fetch(url, { redirect: 'error', headers: { Accept: 'application/json' }, signal });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`${url} responded with status ${response.status}`);
  }
  return response.body ?? [];
}
