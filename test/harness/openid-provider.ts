import type { KeyObject } from 'node:crypto';
import { createServer } from 'node:http';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { type LoopbackServer, listen } from './loopback-server.ts';

export const AUDIENCE = 'https://plants.example';
export const SCOPE = 'plants:write';

/** An asymmetric key of the provider. */
export interface ProviderKey {
  privateKey: CryptoKey | KeyObject;
  publicJwk: JWK;
}

/** A provider whose documents, keys and tokens a test makes by hand. */
export interface HandMadeProvider extends LoopbackServer {
  keys: ProviderKey[];
  /** Paths of the requests so far. */
  requests: string[];
  /** Other than `keys` with status 200. It is sent once `after` is settled. */
  keysResponse: { status?: number; location?: string; body?: string; after?: Promise<void> };
  /** A valid token, except for these members. A member that is undefined is absent. */
  token(claims?: object, header?: object, key?: ProviderKey): Promise<string>;
}

export async function makeKey(kid: string, alg = 'ES256'): Promise<ProviderKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

export async function startProvider(): Promise<HandMadeProvider> {
  const server = createServer(async (request, response) => {
    provider.requests.push(request.url!);
    if (request.url === '/.well-known/openid-configuration') {
      response.end(JSON.stringify({ issuer: provider.url, jwks_uri: `${provider.url}/keys` }));
      return;
    }
    const { status = 200, location = '', body, after } = provider.keysResponse;
    await after;
    response.writeHead(status, { Location: location });
    response.end(body ?? JSON.stringify({ keys: provider.keys.map(({ publicJwk }) => publicJwk) }));
  });
  const provider: HandMadeProvider = {
    ...(await listen(server)),
    keys: [await makeKey('first')],
    requests: [],
    keysResponse: {},
    token: (claims, header, { privateKey, publicJwk: { alg, kid } } = provider.keys[0]!) =>
      new SignJWT({
        iss: provider.url,
        aud: AUDIENCE,
        scope: SCOPE,
        sub: 'alice',
        exp: seconds(300),
        ...claims,
      })
        .setProtectedHeader({ alg: alg!, kid: kid!, typ: 'at+jwt', ...header })
        .sign(privateKey, { crit: Object.fromEntries(Object.keys(header ?? {}).map(name => [name, true])) }),
  };
  return provider;
}

/** Seconds since 1970, `offset` from now. */
export function seconds(offset: number): number {
  return Math.floor(Date.now() / 1000) + offset;
}
