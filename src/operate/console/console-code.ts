import { hash, randomBytes } from 'node:crypto';

const VALID_MS = 5 * 60_000;

/** Makes 32 random bytes in base64url. */
export function randomSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** SHA-256 of a secret in hexadecimal. The store gets only this. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** Makes a code that signs in to the operator's console once, within 5 minutes. */
export async function makeConsoleCode(store: {
  createConsoleCode(hash: string, expiresAt: number): Promise<void>;
}): Promise<string> {
  const code = randomSecret();
  await store.createConsoleCode(hashSecret(code), Date.now() + VALID_MS);
  return code;
}
