import { ERRORS, type ErrorName, errorBody } from '../contract/errors.ts';
import { RETRY_AFTER_SECONDS } from '../contract/limits.ts';

/** An HTTP answer as a value. Names and values of the headers follow each other in turn. */
export interface Answer {
  status: number;
  headers: readonly string[];
  /** Text in UTF-8. */
  body: string;
}

/** On every answer: it is JSON and nothing else, and no cache keeps it. */
const COMMON_HEADERS = [
  'Content-Type',
  'application/json',
  'X-Content-Type-Options',
  'nosniff',
  'Cache-Control',
  'no-store',
];

/** RFC 6750 section 3: without a credential the challenge names no error. */
const CHALLENGE = 'Bearer realm="plant-store"';
const CHALLENGES: Partial<Record<ErrorName, string>> = {
  noCredential: CHALLENGE,
  credentialRefused: `${CHALLENGE}, error="invalid_token", error_description="${ERRORS.credentialRefused.message}"`,
};

export function jsonAnswer(status: number, body: string, headers: readonly string[] = []): Answer {
  const length = ['Content-Length', String(Buffer.byteLength(body))];
  return { status, headers: [...COMMON_HEADERS, ...length, ...headers], body };
}

/**
 * An error as the catalogue has it, with the headers its status asks for: `WWW-Authenticate` on 401 (RFC 9110
 * section 15.5.2) and `Retry-After` on 503 (section 15.6.4).
 *
 * @param message said instead of the catalogue's own
 */
export function errorAnswer(name: ErrorName, message?: string, headers: readonly string[] = []): Answer {
  const { status } = ERRORS[name];
  const challenge = CHALLENGES[name];
  const own = challenge === undefined ? [] : ['WWW-Authenticate', challenge];
  if (status === 503) own.push('Retry-After', String(RETRY_AFTER_SECONDS));
  return jsonAnswer(status, JSON.stringify(errorBody(name, message)), [...own, ...headers]);
}
