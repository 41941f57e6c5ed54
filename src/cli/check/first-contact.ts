import { isProtocolError } from '../../client/transport.ts';
import { untrustedCertificate } from '../../client/untrusted-certificate.ts';
import { Failure } from '../output/failure.ts';
import { visible, withoutToken } from '../output/visible-text.ts';
import { type Exchange, type Server, send } from './exchange.ts';
import { PLANT } from './rules.ts';

const SHOWN_LENGTH_MAX = 200;

const ADVICE: [statuses: RegExp, advice: string][] = [
  [/3../, 'it redirects; give the base address of the target'],
  [/401/, 'give a valid token with --token-file; if it is valid, a proxy may remove Authorization'],
  [/403/, 'the token may not create plants; give another token with --token-file'],
  [/404|405/, 'give the base address of the service, without /plants'],
  [/429/, 'the server accepts no more requests now; try again later'],
  [/50[234]/, 'the service is not available now; try again later'],
];

/** Sends a valid plant. @throws {Failure} if every rule would fail for the same reason */
export async function makeContact(server: Server, plantId: bigint): Promise<void> {
  const { href } = server.plantsUrl;
  const { status, headers, body, failure } = await send(server, { body: PLANT }, plantId);
  if (server.stop.aborted) return;
  if (failure !== undefined) throw noResponse(href, failure);
  const [, advice] = ADVICE.find(([statuses]) => statuses.test(String(status))) ?? [];
  if (advice === undefined) return;
  const text = withoutToken(headers.get('location') ?? body.toString(), server.token).trim();
  const shown = visible(text).slice(0, SHOWN_LENGTH_MAX);
  throw new Failure(`${href} responds with ${status} to a valid plant (${shown}); ${advice}`);
}

function noResponse(href: string, { message, code }: NonNullable<Exchange['failure']>): Failure {
  const isNotHttp = code === 'HTTPParserError' || isProtocolError(code);
  const advice = isNotHttp
    ? 'the server did not respond with HTTP; check the address'
    : 'is the service running there?';
  return new Failure(untrustedCertificate(href, code) ?? `${href}: ${message}; ${advice}`);
}
