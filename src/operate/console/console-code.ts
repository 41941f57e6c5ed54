import { randomBytes } from 'node:crypto';
import { hashToken } from '../../core/tokens/token.ts';

const VALID_MS = 5 * 60_000;

/** Makes 32 random bytes in base64url. The store gets only the SHA-256 of a secret. */
export function randomSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Makes a code that signs in to the operator's console once, within 5 minutes. */
export async function makeConsoleCode(store: {
  createConsoleCode(hash: string, expiresAt: number): Promise<void>;
}): Promise<string> {
  const code = randomSecret();
  await store.createConsoleCode(hashToken(code), Date.now() + VALID_MS);
  return code;
}
