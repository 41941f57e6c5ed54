import { InvalidArgumentError } from 'commander';
import type { Extra } from '../../cli/extra.ts';
import { Failure } from '../../cli/shared/failure.ts';
import { choice, repeatableSetting, setting } from '../../cli/shared/setting.ts';
import { type Clock, SYSTEM_CLOCK } from '../../core/clock.ts';
import type { ReceivedRequest } from '../../core/request.ts';
import { rateLimitedLog } from '../../operate/log/rate-limited-log.ts';
import type { OpenExtra } from '../../service.ts';
import { claimRuleOf, restrictsSenders } from './claim-rule.ts';
import { isProtected, type OpenidSettings } from './openid-settings.ts';

/** The value of `--oidc-audience` and `--oidc-type` for tokens without the claim or parameter. */
const NONE = 'none';
/** The value of `--oidc-claim` that accepts every token of the provider for the audience. */
const ANY_CLAIM = 'any';

interface OpenidOptions {
  oidcIssuer?: string;
  oidcAudience?: string;
  oidcScope?: string;
  /** Texts of rules, or only `any`. */
  oidcClaim?: string[];
  oidcJwks?: string;
  oidcType: string;
}

const CLAIM =
  'claim that access tokens must have, such as repository=acme/plants; a final * allows any end; repeatable; any: no claim is required';
const OIDC_TYPES = ['at+jwt', 'JWT', NONE];

/** Access tokens of an OpenID provider are valid beside the service's own tokens. */
export const openid: Extra = {
  serveOptions: () => [
    setting(
      '--oidc-issuer <URL>',
      'OpenID provider whose access tokens are accepted (claim iss)',
      parseIssuer,
    ),
    setting('--oidc-audience <text>', 'name of this service in access tokens (claim aud), or none'),
    setting('--oidc-scope <scope>', 'scope, permission or role that access tokens must have', parseScope),
    repeatableSetting('--oidc-claim <NAME=VALUE>', CLAIM, parseClaim),
    setting('--oidc-jwks <URL or file>', 'keys of the provider (default: from its metadata)', parseJwks),
    choice('--oidc-type <type>', 'type in the header of access tokens (typ)', OIDC_TYPES, 'at+jwt'),
  ],
  read(options) {
    const settings = readOpenid(options as OpenidOptions);
    return settings && openidExtra(settings);
  },
};

/** Makes the extra with these settings. Opening it loads its library. */
export function openidExtra(settings: OpenidSettings, clock: Clock = SYSTEM_CLOCK): OpenExtra {
  return async ({ tokens, tokenTable, traceIdOf, log }, opened) => {
    const { openAccessTokens } = await import('./access-tokens.ts');
    const onFailure = (message: string) => {
      const logCause = rateLimitedLog(details => log.warn(details, message));
      return (cause: unknown, request?: ReceivedRequest) => logCause(cause, request && traceIdOf(request));
    };
    return { validators: [opened.use(openAccessTokens(settings, clock, tokens, tokenTable, onFailure))] };
  };
}

/**
 * Reads the options.
 *
 * @returns undefined without any of them
 * @throws {Failure} with exit code 2 if options are missing, or would accept tokens of strangers
 */
function readOpenid(options: OpenidOptions): OpenidSettings | undefined {
  const { oidcIssuer: issuer, oidcAudience, oidcScope: scope, oidcJwks: jwks, oidcType: type } = options;
  const rules = options.oidcClaim;
  if ([issuer, oidcAudience, scope, rules, jwks].every(each => each === undefined)) return undefined;
  if (!issuer || !oidcAudience)
    throw new Failure('access tokens need both --oidc-issuer and --oidc-audience', 2);
  if (rules?.includes(ANY_CLAIM) && (rules.length > 1 || scope !== undefined))
    throw new Failure(
      '--oidc-claim any stands alone; leave out --oidc-scope and every other --oidc-claim',
      2,
    );
  const claims = (rules ?? []).filter(each => each !== ANY_CLAIM).map(claimRuleOf);
  const isRestricted = scope !== undefined || claims.some(restrictsSenders);
  if (!isRestricted && !rules?.includes(ANY_CLAIM))
    throw new Failure(
      'some providers make tokens for any audience for anybody, so add --oidc-scope, or --oidc-claim NAME=VALUE; --oidc-claim any lets every user of the provider store plants',
      2,
    );
  const audience = oidcAudience === NONE ? undefined : oidcAudience;
  if (audience === undefined && claims.length === 0)
    throw new Failure(
      '--oidc-audience none also accepts tokens for other services, so add --oidc-claim NAME=VALUE, such as client_id=ID',
      2,
    );
  return { issuer, audience, scope, claims, jwks, type: type === NONE ? undefined : type };
}

/** RFC 8414 section 2. */
function parseIssuer(text: string): string {
  if (isProtected(text) && !/[?#\s]/.test(text)) return text;
  throw new InvalidArgumentError('Write an https address without ? or #, such as https://login.example.');
}

/** RFC 6749 section 3.3. */
function parseScope(text: string): string {
  if (/^[!#-[\]-~]+$/.test(text)) return text;
  throw new InvalidArgumentError('Write one scope, without blanks, quotes and other special characters.');
}

function parseJwks(text: string): string {
  if (!/^[a-z]+:\/\//i.test(text) || isProtected(text)) return text;
  throw new InvalidArgumentError('Write an https address, or the path of a file.');
}

function parseClaim(text: string): string {
  try {
    if (text !== ANY_CLAIM) claimRuleOf(text);
    return text;
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}
