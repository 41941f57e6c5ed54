import { decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose';
import type { Clock } from '../../core/clock.ts';
import { readJson, readToEnd } from '../../core/contract/json-reader.ts';
import { TOKEN_EXPIRY_MAX_MS } from '../../core/tokens/stored-token.ts';
import { isTokenLabel, SUBJECT_LABEL_LENGTH_MAX } from '../../formats/token-label.ts';
import { withoutTokens } from '../../operate/log/masked-tokens.ts';
import { claimsNamed, isFulfilled } from './claim-rule.ts';
import type { OpenidSettings } from './openid-settings.ts';
import type { ProviderKeys } from './provider-keys.ts';

/**
 * RFC 8725 section 3.1: a symmetric algorithm or `none` is never accepted. EdDSA is Ed25519 here,
 * which has its own name since RFC 9864.
 */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'];
/** How far the clocks of the provider and the service may differ. */
const CLOCK_SKEW_SECONDS = 30;
const ACCESS_TOKEN_LENGTH_MAX = 8 * 1024;

export interface ValidatedSubject {
  /** The issuer and the subject, as the label of the row of the subject. */
  label: string;
  /** Ms since 1970. */
  expiresAt: number;
}

/**
 * Validates an access token, and finds its subject.
 *
 * @throws {KeysUnavailable} if the key of the token may exist at the provider
 * @throws {Error} that names the condition which the token does not fulfil
 */
export async function validatedSubject(
  token: string,
  keys: ProviderKeys,
  { issuer, audience, scope, claims: rules, type: typ }: OpenidSettings,
  clock: Clock,
): Promise<ValidatedSubject> {
  if (token.length > ACCESS_TOKEN_LENGTH_MAX) throw new Error('it is too long');
  // Without this check, the log would only say that the key of another provider is unknown.
  const { iss: named } = decodeJwt(token);
  if (named !== issuer) throw new Error(unexpected('iss', issuer, named));
  const validate = () =>
    jwtVerify(token, keys.keyOf, {
      algorithms: ALGORITHMS,
      issuer,
      ...(audience !== undefined && { audience }),
      ...(typ !== undefined && { typ }),
      clockTolerance: CLOCK_SKEW_SECONDS,
      currentDate: new Date(clock.wallNow()),
      requiredClaims: ['exp', 'sub'],
    });
  const { payload, protectedHeader } = await validate().catch(async error => {
    // The provider may have replaced a key by one with the same id or without an id.
    if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    await keys.readAgain().catch(() => {
      throw error;
    });
    return await validate();
  });
  const { crit, typ: sentType } = protectedHeader;
  if (crit !== undefined) throw new Error('"crit" is not supported');
  for (const part of token.split('.', 2)) rejectRepeatedMembers(Buffer.from(part, 'base64url').toString());
  const { exp, iss, sub, aud, scope: scopes, scp, roles, permissions } = payload;
  // These settings are undefined if access tokens have no audience and no type. Then an audience
  // shows an ID token, and a type shows a logout token.
  if (typ === undefined && sentType !== undefined) throw new Error(unexpected('typ', typ, sentType));
  // RFC 7519 section 4.1.3: a token for somebody else must be rejected.
  if (audience === undefined && aud !== undefined) throw new Error(unexpected('aud', audience, aud));
  // The space keeps clients from sending the label as their token.
  const label = `${iss} ${sub}`;
  // Both are validated, because a blank at the start of the subject is in the middle of the label.
  if (typeof sub !== 'string' || ![sub, label].every(text => isTokenLabel(text, SUBJECT_LABEL_LENGTH_MAX)))
    throw new Error('"sub" is too long or not readable');
  if (exp! > TOKEN_EXPIRY_MAX_MS / 1000) throw new Error('"exp" is later than any date');
  // `scope` is a text (RFC 8693 section 4.2); some providers send a list.
  const granted = [scopes, scp, roles, permissions].flatMap(each =>
    typeof each === 'string' ? each.split(' ') : each,
  );
  if (scope !== undefined && !granted.includes(scope))
    throw new Error(`"scope", "scp", "roles" and "permissions" do not contain ${scope}`);
  for (const rule of rules) {
    const { name, value, isPrefix } = rule;
    if (!isFulfilled(rule, payload))
      throw new Error(unexpected(name, value + (isPrefix ? '*' : ''), ...claimsNamed(name, payload)));
  }
  return { label, expiresAt: exp! * 1000 };
}

/** Says why the validation failed. The messages of jose lack the expected value. */
export function failureText(failure: Error, token: string, settings: OpenidSettings): string {
  if (!(failure instanceof errors.JWTClaimValidationFailed)) return failure.message;
  const { claim, payload } = failure;
  if (claim === 'typ') return unexpected(claim, settings.type, decodeProtectedHeader(token).typ);
  if (claim === 'aud') return unexpected(claim, settings.audience, payload.aud);
  return failure.message;
}

/** @param expected undefined: the member should be absent @param found all values of the member */
function unexpected(name: string, expected: string | undefined, ...found: unknown[]): string {
  const came = found.map(each => JSON.stringify(each) ?? 'absent').join(' and ') || 'absent';
  return `"${name}" is ${came.slice(0, 200)}, but should be ${expected ?? 'absent'}`;
}

/**
 * Rejects a part in which a member is repeated: jose reads the last one, another reader the first.
 *
 * @throws {Error} also if the part is not JSON
 */
function rejectRepeatedMembers(text: string): void {
  const names = new Set<string>();
  const reading = readJson(text, name => {
    if (names.has(name)) throw new Error(`${JSON.stringify(name)} is repeated`);
    names.add(name);
  });
  if (readToEnd(reading) !== undefined) throw new Error('a part is not JSON');
}

/**
 * Makes a message of jose safe for the log, since it may quote the token of the client. The result
 * is a copy, because a slice would hold the whole token in memory.
 */
export function shownMessage(message: string): string {
  const text = Buffer.from(message.slice(0, 500))
    .toString()
    .replace(/[^ -~]/g, '?');
  return withoutTokens(text);
}
