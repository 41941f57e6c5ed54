import { newPlantJson } from '../../contract/plant.ts';
import { type RequestChanges, send } from './exchange.ts';
import { expectClientError, expectHeader, expectStatus } from './expectations.ts';
import { FAULTY_BODIES } from './faulty-bodies.ts';
import type { Rule } from './rule.ts';
import type { Target } from './target.ts';

/** Sends a valid NewPlant in a request that differs from an ordinary one. */
function sendPlant(target: Target, changes: RequestChanges) {
  return send(target, newPlantJson({ id: target.nextId(), name: 'A' }), changes);
}

/** Requests that differ in form only, so the plant is created. */
const SAME_REQUESTS: {
  id: string;
  title: string;
  source: string;
  changes(target: Target): RequestChanges;
}[] = [
  {
    id: 'credential.scheme-case',
    title: 'the scheme Bearer is taken in any case',
    source: 'RFC 9110 section 11.1',
    changes: ({ token }) => ({ headers: { Authorization: `bEARER ${token}` } }),
  },
  {
    id: 'media-type.case',
    title: 'the media type application/json is taken in any case',
    source: 'RFC 9110 section 8.3.1',
    changes: () => ({ headers: { 'Content-Type': 'Application/JSON' } }),
  },
  {
    id: 'media-type.charset',
    title: 'application/json; charset=utf-8 is taken: the parameter adds nothing',
    source: 'RFC 8259 section 11',
    changes: () => ({ headers: { 'Content-Type': 'application/json; charset=utf-8' } }),
  },
  {
    id: 'http.absolute-form',
    title: 'a request target in absolute form is taken',
    source: 'RFC 9112 section 3.2.2',
    changes: ({ plantsUrl }) => ({ target: plantsUrl.href }),
  },
  {
    id: 'http.field-name-case',
    title: 'the names of header fields are taken in any case',
    source: 'RFC 9110 section 5.1',
    changes: ({ token }) => ({
      headers: {
        Authorization: null,
        'Content-Type': null,
        aUTHORIZATION: `Bearer ${token}`,
        'content-TYPE': 'application/json',
      },
    }),
  },
];

/** Requests with one fault in the head, and the status that HTTP has for it. */
const FAULTY_HEADS: { id: string; title: string; source: string; status: number; changes: RequestChanges }[] =
  [
    {
      id: 'credential.missing',
      title: 'a request without a credential is answered 401',
      source: 'RFC 6750 section 3',
      status: 401,
      changes: { headers: { Authorization: null } },
    },
    {
      id: 'credential.unknown',
      title: 'a request with an unknown token is answered 401',
      source: 'RFC 6750 section 3.1',
      status: 401,
      changes: { headers: { Authorization: 'Bearer no-such-token' } },
    },
    {
      id: 'credential.empty',
      title: 'a request with the scheme Bearer and no token is answered 401',
      source: 'RFC 6750 section 3',
      status: 401,
      changes: { headers: { Authorization: 'Bearer' } },
    },
    {
      id: 'credential.other-scheme',
      title: 'a request with another scheme than Bearer is answered 401',
      source: 'RFC 9110 section 15.5.2',
      status: 401,
      changes: { headers: { Authorization: 'Basic cGxhbnQ6c3RvcmU=' } },
    },
    {
      id: 'media-type.other',
      title: 'a body of another media type than application/json is answered 415',
      source: 'RFC 9110 section 15.5.16',
      status: 415,
      changes: { headers: { 'Content-Type': 'text/plain' } },
    },
    {
      id: 'content-coding.unknown',
      title: 'a body in a content coding that does not exist is answered 415',
      source: 'RFC 9110 section 8.4',
      status: 415,
      changes: { headers: { 'Content-Encoding': 'x-no-such-coding' } },
    },
    {
      id: 'path.unknown',
      title: 'a path that does not exist is answered 404',
      source: 'RFC 9110 section 15.5.5',
      status: 404,
      changes: { path: '/no-such-path' },
    },
    {
      id: 'http.host-missing',
      title: 'a request without Host is answered 400',
      source: 'RFC 9112 section 3.2',
      status: 400,
      changes: { headers: { Host: null } },
    },
    {
      id: 'http.host-repeated',
      title: 'a request with two Host fields is answered 400',
      source: 'RFC 9112 section 3.2',
      status: 400,
      changes: { headers: { Host: ['a.example', 'b.example'] } },
    },
  ];

const HEAD_RULES: Rule[] = [
  ...SAME_REQUESTS.map(
    ({ id, title, source, changes }): Rule => ({
      id,
      level: 'SHOULD',
      title,
      source,
      check: async target => expectStatus(await sendPlant(target, changes(target)), 200),
    }),
  ),
  ...FAULTY_HEADS.map(
    ({ id, title, source, status, changes }): Rule => ({
      id,
      level: 'SHOULD',
      title,
      source,
      check: async target => expectStatus(await sendPlant(target, changes), status),
    }),
  ),
  {
    id: 'credential.challenge',
    level: 'SHOULD',
    title: 'an answer of 401 names the scheme Bearer in WWW-Authenticate',
    source: 'RFC 9110 section 15.5.2; RFC 6750 section 3',
    check: async target => {
      const exchange = await sendPlant(target, { headers: { Authorization: null } });
      if (exchange.status === 401)
        expectHeader(
          exchange,
          'WWW-Authenticate',
          /(?:^|,)[ \t]*Bearer\b/i,
          'a challenge with the scheme Bearer',
        );
    },
  },
  {
    id: 'method.other',
    level: 'SHOULD',
    title: 'a GET of /plants is served, or answered 405 with Allow: POST',
    source: 'RFC 9110 section 15.5.6',
    check: async target => {
      const exchange = await send(target, '', {
        method: 'GET',
        headers: { 'Content-Type': null, 'Content-Length': null },
      });
      // The interface shows no reading of plants and forbids none.
      if (exchange.status >= 200 && exchange.status <= 299) return;
      expectStatus(exchange, 405);
      expectHeader(exchange, 'Allow', /(?:^|,)[ \t]*POST[ \t]*(?:,|$)/, 'POST, perhaps among others');
    },
  },
];

const BODY_RULES: Rule[] = [
  {
    id: 'http.chunked',
    level: 'SHOULD',
    title: 'a body in chunks is taken',
    source: 'RFC 9112 section 7.1',
    check: async target => {
      const plant = newPlantJson({ id: target.nextId(), name: 'A' });
      // Node writes the chunks when it sees the field.
      const headers = { 'Content-Length': null, 'Transfer-Encoding': 'chunked' };
      expectStatus(await send(target, plant, { headers }), 200);
    },
  },
  ...FAULTY_BODIES.map(
    ({ fault, what, body }): Rule => ({
      id: `refuse.${fault}`,
      level: 'SHOULD',
      title: `a body ${what} is answered with a status from 400 to 499`,
      source: 'interface, POST /plants, request; RFC 9110 section 15.5',
      check: async target => expectClientError(await send(target, body(target.nextId()))),
    }),
  ),
];

const REPEAT_RULES: Rule[] = [
  { name: 'same', what: 'the same plant sent again', secondName: 'A' },
  { name: 'other', what: 'another plant with the same id', secondName: 'B' },
].map(({ name, what, secondName }) => ({
  id: `repeat.${name}`,
  level: 'MAY',
  title: `${what} is answered 200 too`,
  source: 'interface, POST /plants, rule 1',
  check: async target => {
    const id = target.nextId();
    expectStatus(await send(target, newPlantJson({ id, name: 'A' })), 200);
    expectStatus(await send(target, newPlantJson({ id, name: secondName })), 200);
  },
}));

/** What HTTP and JSON say of a request like this where the interface is silent. */
export const HTTP_RULES: readonly Rule[] = [...HEAD_RULES, ...BODY_RULES, ...REPEAT_RULES];
