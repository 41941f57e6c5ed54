import { takesNoHttp } from '../../client/transport.ts';
import { untrustedCertificate } from '../../client/untrusted-certificate.ts';
import { Failure } from '../failure.ts';
import { visible, withoutToken } from '../visible-text.ts';
import { type Exchange, PLANT, send } from './exchange.ts';
import { Finding, type Target } from './rule.ts';

/** A message shows this much of what the server says, in UTF-16 code units. */
const SHOWN_LENGTH_MAX = 200;

/** What to do before anything can be checked, by the statuses that say so. */
const ADVICE: [statuses: number[], advice: string][] = [
  [[403], 'the token may not create plants there; give another one with --token-file'],
  [[404, 405], 'give the base address of the service, without /plants'],
  [[429], 'it takes no more requests now; try again later'],
  [[502, 503, 504], 'the service behind it cannot be reached now; try again when it can'],
];

/**
 * Sends one valid plant, to find out whether there is anything to check: without a server behind the address or a token
 * that it takes, every rule would fail for the same reason.
 *
 * @throws {Failure} which says that reason
 */
export async function makeContact(target: Target): Promise<void> {
  const exchange = await send(target).catch(error => {
    throw error instanceof Finding ? noResponse(error, target) : error;
  });
  const { status, headers } = exchange;
  let reason = ADVICE.find(([statuses]) => statuses.includes(status))?.[1];
  if (status === 401) reason = await rejectedToken(exchange, target);
  if (status >= 300 && status <= 399) {
    const location = headers.get('location') ?? 'it does not say where';
    reason = `it leads elsewhere (${shown(location, target)}); give that base address`;
  }
  if (reason === undefined) return;
  throw new Failure(`${target.plantsUrl.href} answers ${status} to a valid plant: ${reason}`);
}

function noResponse({ message, cause }: Finding, { plantsUrl: { href } }: Target): Failure {
  const { code } = cause as NodeJS.ErrnoException;
  const question = takesNoHttp(code)
    ? 'what listens there takes no HTTP; check the address'
    : 'is the service running there?';
  return new Failure(untrustedCertificate(href, code) ?? `${href}: ${message}; ${question}`);
}

/**
 * A server that is sent no credential should name no error in its challenge (RFC 6750 section 3.1), so that it may answer
 * in two ways. Where it does not, a token that was refused looks like one that never arrived.
 */
async function rejectedToken(rejected: Exchange, target: Target): Promise<string> {
  const without = await send(target, PLANT, { Authorization: null }).catch(() => undefined);
  const same =
    without?.status === rejected.status &&
    without.body.equals(rejected.body) &&
    without.headers.get('www-authenticate') === rejected.headers.get('www-authenticate');
  return same
    ? 'it answers the same without any credential, so something before the service takes the Authorization header ' +
        'off, or the token is unknown there'
    : `the token is refused (${shown(rejected.body.toString(), target)}); give one that is in force with --token-file`;
}

/** On one line, and without what a terminal obeys. */
function shown(text: string, { token }: Target): string {
  return visible(withoutToken(text, token).trim()).slice(0, SHOWN_LENGTH_MAX);
}
