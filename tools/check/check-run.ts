import { Failure } from '../../src/cli/shared/failure.ts';
import { CountedProgress } from '../../src/cli/shared/progress-display.ts';
import { jsonObject } from '../../src/client/plant-store-error.ts';
import { isProtocolError, untrustedCertificate } from '../../src/client/transport.ts';
import { SHOWN_LENGTH_MAX, visible, withoutToken } from '../../src/formats/visible-text.ts';
import { faultsOf } from './expectations.ts';
import type { RunIds } from './ids.ts';
import type { RuleResult } from './report.ts';
import { type CompleteResponse, type NoResponse, type Server, send } from './round-trip.ts';
import { PLANT, type Rule } from './rules.ts';
import { sendOnOneConnection } from './second-request.ts';

/** Rules that are checked at the same time. It is fast for a distant server, with little load. */
const RULES_IN_FLIGHT = 8;

const ADVICE: [statuses: RegExp, advice: string][] = [
  [/3../, 'it redirects; give the base address of the target'],
  [/401/, 'give a valid token with --token-file; if it is valid, a proxy may remove Authorization'],
  [/403/, 'the token may not create plants; give another token with --token-file'],
  [/404|405/, 'give the base address of the service, without /plants'],
  [/429/, 'the server accepts no more requests now; try again later'],
  [/50[234]/, 'the service is not available now; try again later'],
];

/**
 * Checks all rules. When `server.stop` aborts, the remaining rules are not checked.
 *
 * @param ids the ids under which plants may be stored
 * @returns the results in the order of the rules
 * @throws {Failure} if the server does not accept a valid plant
 */
export async function checkRules(rules: readonly Rule[], server: Server, ids: RunIds): Promise<RuleResult[]> {
  const fresh = ids.fresh.values();
  const contactId = fresh.next().value!;
  const httpVersion = await makeContact(server, contactId);
  using progress = new CountedProgress('checking', 'rules', rules.length);
  const results: RuleResult[] = [];
  const queue = rules.entries();
  const work = async (): Promise<void> => {
    for (const [index, rule] of queue) {
      const plantId = rule.plantId ?? fresh.next().value!;
      const isOutside = rule.plantId !== undefined && !ids.ofRules.includes(plantId);
      if (isOutside) results[index] = notChecked(rule, `it needs the id ${plantId}, which is not in --ids`);
      else if (rule.framing === 'chunked' && httpVersion === '1.0')
        // RFC 9112 section 6.1 forbids to send chunks to such a server.
        results[index] = notChecked(rule, 'the server responds with HTTP/1.0, which has no chunks');
      else results[index] = await checkRule(rule, server, plantId, contactId);
      progress.done++;
    }
  };
  await Promise.all(Array.from({ length: RULES_IN_FLIGHT }, work));
  return results;
}

/**
 * Sends a valid plant.
 *
 * @returns the HTTP version of the response; undefined if `server.stop` aborts
 * @throws {Failure} if the response shows that every rule would fail
 */
async function makeContact(server: Server, plantId: bigint): Promise<string | undefined> {
  const { href } = server.plantsUrl;
  const { received } = await send(server, { body: PLANT }, plantId);
  if (server.stop.aborted) return undefined;
  if (received.kind === 'noResponse') throw noResponse(href, received);
  const { status, headers, body, httpVersion } = received;
  const [, advice] = ADVICE.find(([statuses]) => statuses.test(String(status))) ?? [];
  if (advice === undefined) return httpVersion;
  const text = withoutToken(headers.get('location') ?? body.toString(), server.token).trim();
  const shown = visible(text).slice(0, SHOWN_LENGTH_MAX);
  throw new Failure(`${href} responds with ${status} to a valid plant (${shown}); ${advice}`);
}

function noResponse(href: string, { message, code }: NoResponse): Failure {
  const advice = isProtocolError(code)
    ? 'the server did not respond with HTTP; check the address'
    : 'is the service running there?';
  return new Failure(untrustedCertificate(href, code) ?? `${href}: ${message}; ${advice}`);
}

/** @param storedId an id that the server has stored */
async function checkRule(rule: Rule, server: Server, plantId: bigint, storedId: bigint): Promise<RuleResult> {
  if (rule.earlierBody !== undefined) await send(server, { body: rule.earlierBody }, plantId);
  const request = { request: rule, plantId };
  const stored = { request: { body: PLANT }, plantId: storedId };
  const { sent, received } =
    rule.connection === 'used'
      ? await sendOnOneConnection(server, stored, request)
      : await send(server, rule, plantId);
  if (received.kind === 'notSent') return notChecked(rule, received.reason);
  const faults = faultsOf(rule, received);
  const mayBeStored = rule.plantId !== undefined && faults.length > 0 && received.kind === 'response';
  const isStored = mayBeStored && (await isStoredId(received, server, storedId));
  if (server.stop.aborted) return notChecked(rule, 'the check was stopped');
  if (isStored) return notChecked(rule, `the server seems to have the id ${plantId}, and accepts an id once`);
  if (faults.length === 0) return { rule, verdict: 'holds' };
  const shown = faults.map(fault => withoutToken(fault, server.token));
  const response = received.kind === 'response' ? received.shown : undefined;
  return { rule, verdict: 'does not hold', faults: shown, sent, received: response };
}

function notChecked(rule: Rule, reason: string): RuleResult {
  return { rule, verdict: 'not checked', reason };
}

/** Whether this response is the one that the server gives to another plant with a stored id. */
async function isStoredId(
  { status, body }: CompleteResponse,
  server: Server,
  storedId: bigint,
): Promise<boolean> {
  if (status < 400 || status > 499) return false;
  const { received } = await send(server, { body: '{"id":<ID>,"name":"B"}' }, storedId);
  if (received.kind === 'noResponse' || received.status !== status) return false;
  const [error, storedError] = [body, received.body].map(each => jsonObject(each.toString()).error);
  return error === storedError;
}
