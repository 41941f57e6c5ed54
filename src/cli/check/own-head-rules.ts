import { ERRORS, type ErrorName } from '../../contract/errors.ts';
import { BODY_BYTES_SETTING_MAX, HEADER_BYTES_MAX } from '../../contract/limits.ts';
import { newPlantJson } from '../../contract/plant.ts';
import { type RequestChanges, send } from './exchange.ts';
import { expectHeader, expectNoHeader, expectStatus } from './expectations.ts';
import { expectError, expectKept } from './own-answers.ts';
import type { Rule } from './rule.ts';
import type { Target } from './target.ts';

const SOURCE = 'this plant store, what is answered where the interface is silent';
const CHALLENGE = 'Bearer realm="plant-store"';

/** A request that is refused for its head, so that its body, which is not even JSON, does not matter. */
interface FaultyHead {
  rule: string;
  title: string;
  error: ErrorName;
  changes(target: Target): RequestChanges;
}

const NO_CREDENTIAL = { Authorization: null };
const MISTYPED = { Authorization: `Bearer plant_${'0'.repeat(36)}` };
const OTHER_MEDIA_TYPE = { 'Content-Type': 'text/plain' };
const TOO_LONG = { 'Content-Length': String(BODY_BYTES_SETTING_MAX + 1) };

const FAULTY_HEADS: FaultyHead[] = [
  {
    rule: 'credential.missing',
    title: 'a request without a credential is refused',
    error: 'noCredential',
    changes: () => ({ headers: NO_CREDENTIAL }),
  },
  {
    rule: 'credential.repeated',
    title: 'a request with two Authorization fields is refused, though each holds the token',
    error: 'noCredential',
    changes: ({ token }) => ({ headers: { Authorization: [`Bearer ${token}`, `Bearer ${token}`] } }),
  },
  {
    rule: 'credential.mistyped',
    title: 'a mistyped token is refused',
    error: 'credentialRefused',
    changes: () => ({ headers: MISTYPED }),
  },
  {
    rule: 'media-type.missing',
    title: 'a request without Content-Type is refused',
    error: 'notJsonMediaType',
    changes: () => ({ headers: { 'Content-Type': null } }),
  },
  {
    rule: 'media-type.other',
    title: 'another media type is refused',
    error: 'notJsonMediaType',
    changes: () => ({ headers: OTHER_MEDIA_TYPE }),
  },
  {
    rule: 'media-type.charset',
    title: 'another charset than utf-8 is refused',
    error: 'notJsonMediaType',
    changes: () => ({ headers: { 'Content-Type': 'application/json; charset=iso-8859-1' } }),
  },
  {
    rule: 'media-type.repeated',
    title: 'two Content-Type fields are refused',
    error: 'notJsonMediaType',
    changes: () => ({ headers: { 'Content-Type': ['application/json', 'application/json'] } }),
  },
  {
    rule: 'content-encoding',
    title: 'any Content-Encoding is refused',
    error: 'contentEncoding',
    changes: () => ({ headers: { 'Content-Encoding': 'identity' } }),
  },
  {
    rule: 'body-size',
    title: 'a body that says it is longer than any limit is refused before it arrives',
    error: 'bodyTooLarge',
    changes: () => ({ headers: TOO_LONG }),
  },
  {
    rule: 'head-size',
    title: 'a head that is too large is refused',
    error: 'headersTooLarge',
    changes: () => ({ headers: { 'X-Padding': 'x'.repeat(HEADER_BYTES_MAX) } }),
  },
  {
    rule: 'path.slash',
    title: 'a slash at the end makes another path',
    error: 'noSuchPath',
    changes: () => ({ path: '/plants/' }),
  },
  {
    rule: 'path.case',
    title: 'other letters make another path',
    error: 'noSuchPath',
    changes: () => ({ path: '/Plants' }),
  },
  {
    rule: 'order.path-before-method',
    title: 'an unknown path is refused before the method',
    error: 'noSuchPath',
    changes: () => ({ path: '/no-such-path', method: 'PATCH' }),
  },
  {
    rule: 'order.method-before-credential',
    title: 'a method is refused before a missing credential',
    error: 'methodNotAllowed',
    changes: () => ({ method: 'PATCH', headers: NO_CREDENTIAL }),
  },
  {
    rule: 'order.credential-before-media-type',
    title: 'a missing credential is refused before the media type',
    error: 'noCredential',
    changes: () => ({ headers: { ...NO_CREDENTIAL, ...OTHER_MEDIA_TYPE } }),
  },
  {
    rule: 'order.media-type-before-size',
    title: 'the media type is refused before the size',
    error: 'notJsonMediaType',
    changes: () => ({ headers: { ...OTHER_MEDIA_TYPE, ...TOO_LONG } }),
  },
];

const FAULT_RULES: Rule[] = FAULTY_HEADS.map(({ rule, title, error, changes }) => ({
  id: `ours.${rule}`,
  level: 'MUST',
  title,
  source: SOURCE,
  check: async target => expectError(await send(target, '{', changes(target)), error),
}));

/** Fields that must be in an answer to a request, each a rule of its own. */
const FIELDS: { rule: string; title: string; changes: RequestChanges; name: string; value: string }[] = [
  {
    rule: 'credential.missing.challenge',
    title: 'the challenge to a request without a credential names no error (RFC 6750 section 3.1)',
    changes: { headers: NO_CREDENTIAL },
    name: 'WWW-Authenticate',
    value: CHALLENGE,
  },
  {
    rule: 'credential.mistyped.challenge',
    title: 'the challenge to a refused token names invalid_token (RFC 6750 section 3.1)',
    changes: { headers: MISTYPED },
    name: 'WWW-Authenticate',
    value: `${CHALLENGE}, error="invalid_token", error_description="${ERRORS.credentialRefused.message}"`,
  },
  {
    rule: 'method.allow',
    title: 'a method that /plants does not take is answered with Allow: POST and nothing else',
    changes: { method: 'PATCH' },
    name: 'Allow',
    value: 'POST',
  },
];

/** The fields that every answer has, on one that keeps a plant and one that refuses it. */
const COMMON_FIELDS: [name: string, value: string][] = [
  ['Content-Type', 'application/json'],
  ['X-Content-Type-Options', 'nosniff'],
  ['Cache-Control', 'no-store'],
];
const BANNED_FIELDS = ['Server', 'X-Powered-By'];

const FIELD_RULES: Rule[] = [
  ...FIELDS.map(
    ({ rule, title, changes, name, value }): Rule => ({
      id: `ours.${rule}`,
      level: 'MUST',
      title,
      source: SOURCE,
      check: async target => expectHeader(await send(target, '{', changes), name, value),
    }),
  ),
  {
    id: 'ours.fields.kept',
    level: 'MUST',
    title: 'the answer to a plant that is kept has the common fields and names no software',
    source: SOURCE,
    check: async target => {
      const exchange = await send(target, newPlantJson({ id: target.nextId(), name: 'A' }));
      expectStatus(exchange, 200);
      for (const [name, value] of COMMON_FIELDS) expectHeader(exchange, name, value);
      for (const name of BANNED_FIELDS) expectNoHeader(exchange, name);
    },
  },
  {
    id: 'ours.fields.refused',
    level: 'MUST',
    title: 'the answer to a body that is refused has the common fields and names no software',
    source: SOURCE,
    check: async target => {
      const exchange = await send(target, '{');
      expectStatus(exchange, 400);
      for (const [name, value] of COMMON_FIELDS) expectHeader(exchange, name, value);
      for (const name of BANNED_FIELDS) expectNoHeader(exchange, name);
    },
  },
];

/** How this plant store answers to heads, and the fields of its own answers. */
export const OWN_HEAD_RULES: readonly Rule[] = [
  ...FAULT_RULES,
  ...FIELD_RULES,
  {
    id: 'ours.query',
    level: 'MUST',
    title: 'a query is ignored',
    source: SOURCE,
    check: async target => {
      const id = target.nextId();
      const body = newPlantJson({ id, name: 'A' });
      expectKept(await send(target, body, { path: '/plants?id=1' }), id, 1, 'created');
    },
  },
];
