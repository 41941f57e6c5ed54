import { ERRORS, type ErrorName } from '../../contract/errors.ts';
import { BODY_BYTES_SETTING_MAX, HEADER_BYTES_MAX, ID_MAX, ID_MIN } from '../../contract/limits.ts';
import { PLANT, type RequestChanges, send, withId } from './exchange.ts';
import {
  expect,
  expectError,
  expectErrorShape,
  expectHeader,
  expectStatus,
  expectStored,
} from './expectations.ts';
import { FAULTY_BODIES, OWN_FAULTY_BODIES } from './faulty-bodies.ts';
import type { Rule } from './rule.ts';

function ours(id: string, title: string, check: Rule['check'], fixedIds: readonly bigint[] = []): Rule {
  const source = 'this plant store, behavior that the interface leaves open';
  return { id: `ours.${id}`, level: 'MUST', title, source, fixedIds, check };
}

/** @param text the id in the body. @param digits the id that Plant-Id must contain */
function exactId(name: string, what: string, text: string, digits: bigint): Rule {
  const check: Rule['check'] = async target => {
    const exchange = await send(target, withId(text));
    expectStatus(exchange, 200);
    expectHeader(exchange, 'Plant-Id', String(digits));
  };
  return ours(`id.${name}`, `${what} is stored and exact in Plant-Id`, check, [digits]);
}

function repeated(
  outcome: 'unchanged' | 'revised',
  id: string,
  title: string,
  texts: [string, string],
): Rule {
  return ours(id, title, async target => {
    expectStored(await send(target, texts[0]), target.id, 1, 'created');
    const again = await send(target, texts[1]);
    if (outcome === 'revised' && again.status === 400) expectError(again, 'idTaken');
    else expectStored(again, target.id, outcome === 'revised' ? 2 : 1, outcome);
  });
}

/** A request that is rejected for its header section. Its body is not JSON, and does not matter. */
function rejected(error: ErrorName, id: string, what: string, changes: RequestChanges): Rule {
  return ours(id, `${what} gets the error ${ERRORS[error].number}`, async target =>
    expectError(await send(target, '{', changes), error),
  );
}

function challenge(id: string, what: string, value: string, changes: RequestChanges): Rule {
  return ours(`${id}.challenge`, `the challenge names ${what} (RFC 6750 section 3.1)`, async target =>
    expectHeader(await send(target, '{', changes), 'WWW-Authenticate', value),
  );
}

function commonFields(id: string, what: string, status: number, text: string): Rule {
  return ours(id, `the response to ${what} has the common fields and names no software`, async target => {
    const exchange = await send(target, text);
    expectStatus(exchange, status);
    expectHeader(exchange, 'Content-Type', 'application/json');
    expectHeader(exchange, 'X-Content-Type-Options', 'nosniff');
    expectHeader(exchange, 'Cache-Control', 'no-store');
    expectHeader(exchange, 'Server', undefined);
    expectHeader(exchange, 'X-Powered-By', undefined);
  });
}

const NO_CREDENTIAL = { Authorization: null };
const TWO_CREDENTIALS = { Authorization: ['Bearer <ACCESS_TOKEN>', 'Bearer <ACCESS_TOKEN>'] };
const MISTYPED = { Authorization: `Bearer plant_${'0'.repeat(36)}` };
const OTHER_MEDIA_TYPE = { 'Content-Type': 'text/plain' };
const OTHER_CHARSET = { 'Content-Type': 'application/json; charset=iso-8859-1' };
const TWO_MEDIA_TYPES = { 'Content-Type': ['application/json', 'application/json'] };
const TOO_LONG = { 'Content-Length': String(BODY_BYTES_SETTING_MAX + 1) };
const LONG_FIELD = { 'X-Padding': 'x'.repeat(HEADER_BYTES_MAX) };
const OTHER_METHOD = { ':method': 'PATCH' };
const CHALLENGE = 'Bearer realm="plant-store"';
const INVALID_TOKEN = `${CHALLENGE}, error="invalid_token", error_description="${ERRORS.tokenRejected.message}"`;

/** Promises of this plant store beyond the interface: bodies, repeated ids, and header sections. */
export const OWN_RULES: readonly Rule[] = [
  exactId('above-double', 'the id 2^53 + 1', '9007199254740993', 2n ** 53n + 1n),
  exactId('below-double', 'the id -2^53 - 1', '-9007199254740993', -(2n ** 53n) - 1n),
  exactId('int64-max', 'the largest int64', '9223372036854775807', ID_MAX),
  exactId('int64-min', 'the smallest int64', '-9223372036854775808', ID_MIN),
  exactId('zero-fraction', 'the id 7.0, the integer 7,', '7.0', 7n),
  exactId('exponent', 'the id 7e3, the integer 7000,', '7e3', 7000n),
  exactId('negative-exponent', 'the id 7000e-3, the integer 7,', '7000e-3', 7n),
  exactId('negative-zero', 'the id -0, the integer 0,', '-0', 0n),

  repeated('unchanged', 'repeat.same', 'a plant sent again is unchanged and makes no revision', [
    '{"id":<ID>,"name":"A","tag":"B"}',
    '{"id":<ID>,"name":"A","tag":"B"}',
  ]),
  repeated('revised', 'repeat.other-name', 'another name makes a revision or gets the error 40003', [
    PLANT,
    withId('<ID>', 'B'),
  ]),
  repeated('revised', 'repeat.tag-removed', 'no tag after an empty tag makes a revision or gets 40003', [
    '{"id":<ID>,"name":"A","tag":""}',
    PLANT,
  ]),
  repeated('unchanged', 'further-members', 'members beyond id, name and tag are ignored', [
    '{"id":<ID>,"name":"A","height":[1.5,{}]}',
    '{"id":<ID>,"name":"A","height":2}',
  ]),

  ...[...FAULTY_BODIES, ...OWN_FAULTY_BODIES].map(([error, fault, what, text, encoding, fixedIds]) => {
    const title = `a body ${what} gets the error ${ERRORS[error].number}`;
    const check: Rule['check'] = async target => expectError(await send(target, text, {}, encoding), error);
    return ours(`reject.${fault}`, title, check, fixedIds);
  }),
  ours('every-fault-named', 'the message names every fault of a body at once', async target => {
    const exchange = await send(target, '{"id":1.5,"tag":null}');
    const { message } = expectErrorShape(exchange);
    const unnamed = ['id', 'name', 'tag'].filter(member => !new RegExp(`\\b${member}\\b`).test(message));
    expect(exchange, unnamed.length === 0, 'a message that names id, name and tag', `${unnamed} not named`);
  }),

  rejected('noCredential', 'credential.missing', 'a request without a credential', NO_CREDENTIAL),
  rejected('noCredential', 'credential.repeated', 'a second Authorization field', TWO_CREDENTIALS),
  rejected('tokenRejected', 'credential.mistyped', 'a mistyped token', MISTYPED),
  rejected('notJsonMediaType', 'media-type.missing', 'an absent Content-Type', { 'Content-Type': null }),
  rejected('notJsonMediaType', 'media-type.other', 'another media type', OTHER_MEDIA_TYPE),
  rejected('notJsonMediaType', 'media-type.charset', 'a charset other than utf-8', OTHER_CHARSET),
  rejected('notJsonMediaType', 'media-type.repeated', 'a second Content-Type field', TWO_MEDIA_TYPES),
  rejected('contentEncoding', 'content-encoding', 'any Content-Encoding', { 'Content-Encoding': 'identity' }),
  rejected('bodyTooLarge', 'body-size', 'a Content-Length beyond any limit', TOO_LONG),
  rejected('headersTooLarge', 'headers-size', 'a header section that is too large', LONG_FIELD),
  rejected('noSuchPath', 'path.slash', 'a path with a final slash', { ':path': '/plants/' }),
  rejected('noSuchPath', 'path.case', 'a path in another case', { ':path': '/Plants' }),
  rejected('noSuchPath', 'order.path-before-method', 'another method on an unknown path', {
    ...OTHER_METHOD,
    ':path': '/no-such-path',
  }),
  rejected('methodNotAllowed', 'order.method-before-credential', 'another method without a credential', {
    ...OTHER_METHOD,
    ...NO_CREDENTIAL,
  }),
  rejected('noCredential', 'order.credential-before-media-type', 'another media type without a credential', {
    ...OTHER_MEDIA_TYPE,
    ...NO_CREDENTIAL,
  }),
  rejected('notJsonMediaType', 'order.media-type-before-size', 'another media type with a body too large', {
    ...OTHER_MEDIA_TYPE,
    ...TOO_LONG,
  }),

  challenge('credential.missing', 'no error without a credential', CHALLENGE, NO_CREDENTIAL),
  challenge('credential.mistyped', 'invalid_token for a rejected token', INVALID_TOKEN, MISTYPED),
  ours('method.allow', 'another method gets exactly Allow: POST', async target =>
    expectHeader(await send(target, '{', OTHER_METHOD), 'Allow', 'POST'),
  ),
  commonFields('fields.stored', 'a plant that is stored', 200, PLANT),
  commonFields('fields.rejected', 'a body that is rejected', 400, '{'),
  ours('query', 'a query is ignored', async target =>
    expectStored(await send(target, PLANT, { ':path': '/plants?id=1' }), target.id, 1, 'created'),
  ),
];
