import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { BEARER_TOKEN } from '../contract/bearer-token.ts';

/** The prefix by which people and secret scanners recognise a token. */
const PREFIX = 'plant_';
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 30 characters of 62 are 178 random bits. */
const RANDOM_LENGTH = 30;
/** Six digits hold a CRC-32: 62^6 is the first power of 62 beyond 2^32. */
const CHECKSUM_LENGTH = 6;
const TOKEN = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);

/** Makes a new token: `plant_`, 30 random characters, and a checksum of both in 6 more. */
export function makeToken(): string {
  let body = PREFIX;
  for (let count = 0; count < RANDOM_LENGTH; count++) body += ALPHABET[randomInt(ALPHABET.length)];
  return body + checksum(body);
}

/** Whether a text has the form of a token. The checksum detects typing errors without a lookup. */
export function isWellFormed(token: string): boolean {
  return TOKEN.test(token) && token.endsWith(checksum(token.slice(0, -CHECKSUM_LENGTH)));
}

/** SHA-256 of a token in hexadecimal. A fast hash is enough: 178 random bits cannot be guessed. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'hex');
}

/** CRC-32 in base 62, most significant digit first. */
function checksum(body: string): string {
  let rest = crc32(body);
  let digits = '';
  for (let count = 0; count < CHECKSUM_LENGTH; count++) {
    digits = ALPHABET[rest % ALPHABET.length] + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits;
}

/** RFC 6750 section 2.1: "Bearer" 1*SP b64token. RFC 9110 section 11.1: case-insensitive scheme. */
const SCHEME = /^bearer +/i;

/**
 * Finds the bearer token of a request.
 *
 * @param authorization the values of all Authorization fields. Two are rejected: a proxy may have
 *   checked the other one.
 * @returns undefined unless there is exactly one field, with a token of the scheme Bearer
 */
export function bearerToken(authorization: readonly string[]): string | undefined {
  const [credential = ''] = authorization;
  if (authorization.length !== 1 || !SCHEME.test(credential)) return undefined;
  const token = credential.replace(SCHEME, '');
  return BEARER_TOKEN.test(token) ? token : undefined;
}
