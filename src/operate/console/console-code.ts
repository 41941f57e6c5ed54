import { randomBytes } from 'node:crypto';
import { hashToken } from '../../core/tokens/token.ts';

const VALID_MS = 5 * 60_000;

/** @returns 32 random bytes in base64url; the store has only their SHA-256 */
export function makeConsoleSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** @returns a code that signs in to the operator's console once, within 5 minutes */
export async function makeConsoleCode(store: {
  createConsoleCode(hash: string, expiresAt: number): Promise<void>;
}): Promise<string> {
  const code = makeConsoleSecret();
  await store.createConsoleCode(hashToken(code), Date.now() + VALID_MS);
  return code;
}
