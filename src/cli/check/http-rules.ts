import { PLANT, type RequestChanges, send, withId } from './exchange.ts';
import { expect, expectHeader, expectStatus } from './expectations.ts';
import { FAULTY_BODIES } from './faulty-bodies.ts';
import { INTERFACE_RULES } from './interface-rules.ts';
import type { Rule } from './rule.ts';

function should(id: string, title: string, source: string, check: Rule['check']): Rule {
  return { id, level: 'SHOULD', title, source, check };
}

/** A request with a valid NewPlant and another header section gets this status. */
function responded(status: number, id: string, source: string, what: string, changes: RequestChanges): Rule {
  return should(id, `${what} gets the status ${status}`, source, async target =>
    expectStatus(await send(target, PLANT, changes), status),
  );
}

/** A second plant with the same id. The interface does not say whether an id may be used again. */
function repeat(id: string, what: string, second: string): Rule {
  const check: Rule['check'] = async target => {
    expectStatus(await send(target), 200);
    expectStatus(await send(target, second), 200);
  };
  const source = 'interface, POST /plants, rule 1';
  return { id, level: 'MAY', title: `${what} also gets the status 200`, source, check };
}

const NO_CREDENTIAL = { Authorization: null };
const BASIC = { Authorization: 'Basic cGxhbnQ6c3RvcmU=' };
const CHALLENGE_SOURCE = 'RFC 9110 section 15.5.2; RFC 6750 section 3';
const CODING = { 'Content-Encoding': 'x-no-such-coding' };
const TWO_HOSTS = { Host: ['a.example', 'b.example'] };
/** Node sends the body in chunks because of this field. */
const CHUNKED = { 'Content-Length': null, 'Transfer-Encoding': 'chunked' };
const FIELD_NAMES = {
  ...{ Authorization: null, aUTHORIZATION: 'Bearer <ACCESS_TOKEN>' },
  ...{ 'Content-Type': null, 'content-TYPE': 'application/json' },
};

/** The rules for every plant store: those of the interface, then those of HTTP and JSON. */
export const RULES_FOR_EVERY_STORE: readonly Rule[] = [
  ...INTERFACE_RULES,
  responded(200, 'credential.scheme-case', 'RFC 9110 section 11.1', 'the scheme Bearer in any case', {
    Authorization: 'bEARER <ACCESS_TOKEN>',
  }),
  responded(200, 'media-type.case', 'RFC 9110 section 8.3.1', 'application/json in any case', {
    'Content-Type': 'Application/JSON',
  }),
  responded(200, 'media-type.charset', 'RFC 8259 section 11', 'application/json; charset=utf-8', {
    'Content-Type': 'application/json; charset=utf-8',
  }),
  responded(200, 'http.absolute-form', 'RFC 9112 section 3.2.2', 'a request target in absolute form', {
    ':path': '<PLANTS_URL>',
  }),
  responded(200, 'http.field-name-case', 'RFC 9110 section 5.1', 'a field name in any case', FIELD_NAMES),
  responded(200, 'http.chunked', 'RFC 9112 section 7.1', 'a chunked body', CHUNKED),
  responded(401, 'credential.missing', 'RFC 6750 section 3', 'a request without a credential', NO_CREDENTIAL),
  responded(401, 'credential.unknown', 'RFC 6750 section 3.1', 'an unknown token', {
    Authorization: 'Bearer no-such-token',
  }),
  responded(401, 'credential.empty', 'RFC 6750 section 3', 'the scheme Bearer without a token', {
    Authorization: 'Bearer',
  }),
  responded(401, 'credential.other-scheme', 'RFC 9110 section 15.5.2', 'a scheme other than Bearer', BASIC),
  responded(415, 'media-type.other', 'RFC 9110 section 15.5.16', 'a body of another media type', {
    'Content-Type': 'text/plain',
  }),
  responded(415, 'content-coding.unknown', 'RFC 9110 section 8.4', 'an unknown content coding', CODING),
  responded(404, 'path.unknown', 'RFC 9110 section 15.5.5', 'an unknown path', { ':path': '/no-such-path' }),
  responded(400, 'http.host-missing', 'RFC 9112 section 3.2', 'a request without Host', { Host: null }),
  responded(400, 'http.host-repeated', 'RFC 9112 section 3.2', 'a request with two Host fields', TWO_HOSTS),
  should('credential.challenge', 'a 401 names Bearer in WWW-Authenticate', CHALLENGE_SOURCE, async target => {
    const exchange = await send(target, PLANT, NO_CREDENTIAL);
    if (exchange.status !== 401) return;
    const bearer = /(?:^|,)[ \t]*Bearer\b/i;
    expectHeader(exchange, 'WWW-Authenticate', bearer, 'a challenge with the scheme Bearer');
  }),
  should(
    'method.other',
    'GET /plants gets a status from 200 to 299, or 405 with Allow: POST',
    'RFC 9110 section 15.5.6',
    async target => {
      const changes = { ':method': 'GET', 'Content-Type': null, 'Content-Length': null };
      const exchange = await send(target, '', changes);
      // The interface does not forbid a server to list plants.
      if (exchange.status >= 200 && exchange.status <= 299) return;
      expectStatus(exchange, 405);
      expectHeader(exchange, 'Allow', /(?:^|,)[ \t]*POST[ \t]*(?:,|$)/, 'POST, perhaps among others');
    },
  ),
  ...FAULTY_BODIES.map(([, fault, what, text, encoding]) => {
    const title = `a body ${what} gets a status from 400 to 499`;
    const source = 'interface, POST /plants, request; RFC 9110 section 15.5';
    return should(`reject.${fault}`, title, source, async target => {
      const exchange = await send(target, text, {}, encoding);
      const { status } = exchange;
      expect(exchange, status >= 400 && status <= 499, 'a status from 400 to 499', String(status));
    });
  }),
  repeat('repeat.same', 'the same plant, sent again,', PLANT),
  repeat('repeat.other', 'another plant with the same id', withId('<ID>', 'B')),
];
