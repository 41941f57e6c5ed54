import { newPlantJson } from '../../contract/plant.ts';
import { type RequestChanges, send, sendPlant } from './exchange.ts';
import { expect, expectHeader, expectStatus } from './expectations.ts';
import { FAULTY_BODIES } from './faulty-bodies.ts';
import type { Rule } from './rule.ts';

function should(id: string, title: string, source: string, check: Rule['check']): Rule {
  return { id, level: 'SHOULD', title, source, check };
}

/** A valid NewPlant in a request that differs in form only is created. */
function taken(id: string, source: string, title: string, changes: RequestChanges): Rule {
  return should(id, title, source, async target =>
    expectStatus(await sendPlant(target, { name: 'A' }, changes), 200),
  );
}

/** A valid NewPlant in a request with one fault in the header section has the status that HTTP has for it. */
function faulty(status: number, id: string, source: string, what: string, changes: RequestChanges): Rule {
  return should(id, `${what} is answered ${status}`, source, async target =>
    expectStatus(await sendPlant(target, { name: 'A' }, changes), status),
  );
}

const NO_CREDENTIAL = { Authorization: null };

const REPEATS: [name: string, what: string, secondName: string][] = [
  ['same', 'the same plant sent again', 'A'],
  ['other', 'another plant with the same id', 'B'],
];

/** What HTTP and JSON say of a request like this where the interface is silent. */
export const HTTP_RULES: readonly Rule[] = [
  taken('credential.scheme-case', 'RFC 9110 section 11.1', 'the scheme Bearer is taken in any case', {
    Authorization: 'bEARER <ACCESS_TOKEN>',
  }),
  taken('media-type.case', 'RFC 9110 section 8.3.1', 'the media type application/json is taken in any case', {
    'Content-Type': 'Application/JSON',
  }),
  taken(
    'media-type.charset',
    'RFC 8259 section 11',
    'application/json; charset=utf-8 is taken: the parameter adds nothing',
    { 'Content-Type': 'application/json; charset=utf-8' },
  ),
  taken('http.absolute-form', 'RFC 9112 section 3.2.2', 'a request target in absolute form is taken', {
    ':path': '<PLANTS_URL>',
  }),
  taken('http.field-name-case', 'RFC 9110 section 5.1', 'the names of header fields are taken in any case', {
    Authorization: null,
    aUTHORIZATION: 'Bearer <ACCESS_TOKEN>',
    'Content-Type': null,
    'content-TYPE': 'application/json',
  }),
  faulty(401, 'credential.missing', 'RFC 6750 section 3', 'a request without a credential', NO_CREDENTIAL),
  faulty(401, 'credential.unknown', 'RFC 6750 section 3.1', 'a request with an unknown token', {
    Authorization: 'Bearer no-such-token',
  }),
  faulty(401, 'credential.empty', 'RFC 6750 section 3', 'a request with the scheme Bearer and no token', {
    Authorization: 'Bearer',
  }),
  faulty(
    401,
    'credential.other-scheme',
    'RFC 9110 section 15.5.2',
    'a request with another scheme than Bearer',
    { Authorization: 'Basic cGxhbnQ6c3RvcmU=' },
  ),
  faulty(
    415,
    'media-type.other',
    'RFC 9110 section 15.5.16',
    'a body of another media type than application/json',
    { 'Content-Type': 'text/plain' },
  ),
  faulty(
    415,
    'content-coding.unknown',
    'RFC 9110 section 8.4',
    'a body in a content coding that does not exist',
    { 'Content-Encoding': 'x-no-such-coding' },
  ),
  faulty(404, 'path.unknown', 'RFC 9110 section 15.5.5', 'a path that does not exist', {
    ':path': '/no-such-path',
  }),
  faulty(400, 'http.host-missing', 'RFC 9112 section 3.2', 'a request without Host', { Host: null }),
  faulty(400, 'http.host-repeated', 'RFC 9112 section 3.2', 'a request with two Host fields', {
    Host: ['a.example', 'b.example'],
  }),
  should(
    'credential.challenge',
    'an answer of 401 names the scheme Bearer in WWW-Authenticate',
    'RFC 9110 section 15.5.2; RFC 6750 section 3',
    async target => {
      const exchange = await sendPlant(target, { name: 'A' }, NO_CREDENTIAL);
      if (exchange.status !== 401) return;
      const bearer = /(?:^|,)[ \t]*Bearer\b/i;
      expectHeader(exchange, 'WWW-Authenticate', bearer, 'a challenge with the scheme Bearer');
    },
  ),
  should(
    'method.other',
    'a GET of /plants is served, or answered 405 with Allow: POST',
    'RFC 9110 section 15.5.6',
    async target => {
      const changes = { ':method': 'GET', 'Content-Type': null, 'Content-Length': null };
      const exchange = await send(target, '', changes);
      // The interface shows no reading of plants and forbids none.
      if (exchange.status >= 200 && exchange.status <= 299) return;
      expectStatus(exchange, 405);
      expectHeader(exchange, 'Allow', /(?:^|,)[ \t]*POST[ \t]*(?:,|$)/, 'POST, perhaps among others');
    },
  ),
  // Node writes the chunks when it sees the field.
  taken('http.chunked', 'RFC 9112 section 7.1', 'a body in chunks is taken', {
    'Content-Length': null,
    'Transfer-Encoding': 'chunked',
  }),
  ...FAULTY_BODIES.map(([, fault, what, body]) =>
    should(
      `refuse.${fault}`,
      `a body ${what} is answered with a status from 400 to 499`,
      'interface, POST /plants, request; RFC 9110 section 15.5',
      async target => {
        const exchange = await send(target, body(target.nextId()));
        const { status } = exchange;
        expect(exchange, status >= 400 && status <= 499, 'a status from 400 to 499', String(status));
      },
    ),
  ),
  ...REPEATS.map(
    ([name, what, secondName]): Rule => ({
      id: `repeat.${name}`,
      level: 'MAY',
      title: `${what} is answered 200 too`,
      source: 'interface, POST /plants, rule 1',
      check: async target => {
        const id = target.nextId();
        expectStatus(await send(target, newPlantJson({ id, name: 'A' })), 200);
        expectStatus(await send(target, newPlantJson({ id, name: secondName })), 200);
      },
    }),
  ),
];
