/** A condition on the claims of an access token: one claim has this value, or begins with it. */
export interface ClaimRule {
  name: string;
  value: string;
  isPrefix: boolean;
}

/** Claims about the token and the provider. A rule on one of them would not restrict who sends. */
const NOT_ABOUT_THE_SENDER = ['iss', 'aud', 'exp', 'nbf', 'iat', 'jti'];

/** Claims that distinguish kinds of tokens, and not senders. */
const KINDS_OF_TOKENS = ['token_use', 'typ', 'auth_time', 'ver', 'version'];

/**
 * Parses a rule.
 *
 * @param text `NAME=VALUE`; a final `*` makes the value a prefix
 * @throws {Error} whose message says what to write
 */
export function claimRuleOf(text: string): ClaimRule {
  const [, name = '', pattern = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  const isPrefix = pattern.endsWith('*');
  const value = isPrefix ? pattern.slice(0, -1) : pattern;
  if (/\p{Cc}/u.test(text) || [name, pattern].some(each => each === '' || each !== each.trim()))
    throw new Error('Write NAME=VALUE, without blanks around NAME and VALUE.');
  if (value === '') throw new Error('Write a VALUE before the *, because every token would match.');
  if (value.includes('*')) throw new Error('Write * only at the end of VALUE; there it makes a prefix.');
  if (NOT_ABOUT_THE_SENDER.includes(name))
    throw new Error(`Write another claim than ${name}, which does not say who sends.`);
  return { name, value, isPrefix };
}

/** Whether a rule can reject some of those who get tokens of this provider. */
export function restrictsSenders({ name }: ClaimRule): boolean {
  return !KINDS_OF_TOKENS.includes(name);
}

/**
 * Whether the claims fulfil a rule. A list fulfils it if one of its members does.
 *
 * A dot in the name may belong to the name of a claim (`https://login.example/roles`), or lead into
 * an object (`realm_access.roles`). If the claims have both, both must fulfil the rule.
 */
export function isFulfilled({ name, ...wanted }: ClaimRule, claims: unknown): boolean {
  const found = [...claimsNamed(name, claims)];
  return found.length > 0 && found.every(each => [each].flat().some(value => isWanted(value, wanted)));
}

/** The values of all claims that the name can mean. */
export function* claimsNamed(name: string, claims: unknown): Generator<unknown, void, undefined> {
  // A list also has own properties, such as its length.
  if (typeof claims !== 'object' || claims === null || Array.isArray(claims)) return;
  const members = claims as Record<string, unknown>;
  // Only own properties, because a name such as `constructor` is no claim.
  if (Object.hasOwn(members, name)) yield members[name];
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
    const outer = name.slice(0, dot);
    if (Object.hasOwn(members, outer)) yield* claimsNamed(name.slice(dot + 1), members[outer]);
  }
}

/** A number is compared only if JSON.parse cannot have rounded it. */
function isWanted(claim: unknown, { value, isPrefix }: Omit<ClaimRule, 'name'>): boolean {
  if (typeof claim === 'string') return isPrefix ? claim.startsWith(value) : claim === value;
  return !isPrefix && (typeof claim === 'boolean' || Number.isSafeInteger(claim)) && String(claim) === value;
}
