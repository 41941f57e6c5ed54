import { isProtocolError } from '../../client/transport.ts';
import { untrustedCertificate } from '../../client/untrusted-certificate.ts';
import { Failure } from '../failure.ts';
import { visible, withoutToken } from '../visible-text.ts';
import { type Exchange, PLANT, send } from './exchange.ts';
import { Finding, type Target } from './rule.ts';

/** Length of the server's text in a message, in UTF-16 code units. */
const SHOWN_LENGTH_MAX = 200;

/** Advice for the user, by the status of the first response. */
const ADVICE: [statuses: number[], advice: string][] = [
  [[403], 'the token may not create plants; give another token with --token-file'],
  [[404, 405], 'give the base address of the service, without /plants'],
  [[429], 'the server accepts no more requests now; try again later'],
  [[502, 503, 504], 'the service is not available now; try again later'],
];

/**
 * Sends one valid plant. If the address or the token is wrong, every rule would fail for the same
 * reason, so the check stops here.
 *
 * @throws {Failure} with that reason
 */
export async function makeContact(target: Target): Promise<void> {
  const exchange = await send(target).catch(error => {
    throw error instanceof Finding ? noResponse(error, target) : error;
  });
  const { status, headers } = exchange;
  let reason = ADVICE.find(([statuses]) => statuses.includes(status))?.[1];
  if (status === 401) reason = await rejectedToken(exchange, target);
  if (status >= 300 && status <= 399) {
    const location = headers.get('location') ?? 'without a Location header';
    reason = `it redirects (${shown(location, target)}); give the base address of the target`;
  }
  if (reason === undefined) return;
  throw new Failure(`${target.plantsUrl.href} responds with ${status} to a valid plant: ${reason}`);
}

function noResponse({ message, cause }: Finding, { plantsUrl: { href } }: Target): Failure {
  const { code } = cause as NodeJS.ErrnoException;
  const question = isProtocolError(code)
    ? 'the server did not respond with HTTP; check the address'
    : 'is the service running there?';
  return new Failure(untrustedCertificate(href, code) ?? `${href}: ${message}; ${question}`);
}

/**
 * Finds out why a token was rejected. Without a credential, a challenge should name no error (RFC
 * 6750 section 3.1). If the response is the same with the token, the token may not have reached the
 * server.
 */
async function rejectedToken(rejected: Exchange, target: Target): Promise<string> {
  const without = await send(target, PLANT, { Authorization: null }).catch(() => undefined);
  const same =
    without?.status === rejected.status &&
    without.body.equals(rejected.body) &&
    without.headers.get('www-authenticate') === rejected.headers.get('www-authenticate');
  return same
    ? 'the response without a token is the same, so a proxy may remove the Authorization header, or the token is unknown'
    : `the token is rejected (${shown(rejected.body.toString(), target)}); give a valid token with --token-file`;
}

/** One line without control characters and token. */
function shown(text: string, { token }: Target): string {
  return visible(withoutToken(text, token).trim()).slice(0, SHOWN_LENGTH_MAX);
}
