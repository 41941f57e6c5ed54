import { randomBytes } from 'node:crypto';

/** A one-time code for the operator's console is valid for this long. */
export const CONSOLE_CODE_VALID_MS = 5 * 60_000;

/** 32 random bytes in base64url, as a one-time code and as the secret of a session. */
export const CONSOLE_SECRET = /^[A-Za-z0-9_-]{43}$/;

/** @returns a secret that cannot be guessed; only its SHA-256 is stored */
export function makeConsoleSecret(): string {
  return randomBytes(32).toString('base64url');
}
