import { ERRORS, type ErrorName } from '../../contract/errors.ts';
import { BODY_BYTES_SETTING_MAX, HEADER_BYTES_MAX, ID_MAX, ID_MIN } from '../../contract/limits.ts';
import { newPlantJson, type Plant } from '../../contract/plant.ts';
import { type Exchange, type RequestChanges, send, sendPlant } from './exchange.ts';
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
  const source = 'this plant store, what is answered where the interface is silent';
  return { id: `ours.${id}`, level: 'MUST', title, source, fixedIds, check };
}

/** Ids as they are written, and the digits that Plant-Id must give. */
const IDS: [name: string, title: string, text: string, digits: bigint][] = [
  ['above-double', 'the id 2^53 + 1 is kept', '9007199254740993', 2n ** 53n + 1n],
  ['below-double', 'the id -2^53 - 1 is kept', '-9007199254740993', -(2n ** 53n) - 1n],
  ['int64-max', 'the largest int64 is kept as an id', '9223372036854775807', ID_MAX],
  ['int64-min', 'the smallest int64 is kept as an id', '-9223372036854775808', ID_MIN],
  ['zero-fraction', 'the id 7.0 is the integer 7', '7.0', 7n],
  ['exponent', 'the id 7e3 is the integer 7000', '7e3', 7000n],
  ['negative-exponent', 'the id 7000e-3 is the integer 7', '7000e-3', 7n],
  ['negative-zero', 'the id -0 is the integer 0', '-0', 0n],
];

const ID_RULES = IDS.map(([name, title, text, digits]) =>
  ours(
    `id.${name}`,
    `${title}, digit for digit in Plant-Id`,
    async target => {
      const exchange = await send(target, `{"id":${text},"name":"A"}`);
      expectStatus(exchange, 200);
      expectHeader(exchange, 'Plant-Id', String(digits));
    },
    [digits],
  ),
);

/** A plant, what is sent after it under the same id, and what becomes of that. */
const REPEATS: [
  name: string,
  title: string,
  first: Plant,
  second: Plant,
  outcome: 'unchanged' | 'revised',
][] = [
  [
    'same',
    'a plant sent again is unchanged, and no further revision is made',
    { name: 'A', tag: 'B' },
    { name: 'A', tag: 'B' },
    'unchanged',
  ],
  [
    'other-name',
    'another name under the same id is its second revision, or is refused where ids are write-once',
    { name: 'A' },
    { name: 'B' },
    'revised',
  ],
  [
    'tag-removed',
    'no tag instead of an empty one is another content, or is refused where ids are write-once',
    { name: 'A', tag: '' },
    { name: 'A' },
    'revised',
  ],
];

const REPEAT_RULES = REPEATS.map(([name, title, first, second, outcome]) =>
  ours(`repeat.${name}`, title, async target => {
    const id = target.nextId();
    expectStored(await send(target, newPlantJson({ id, ...first })), id, 1, 'created');
    const again = await send(target, newPlantJson({ id, ...second }));
    if (outcome === 'revised' && again.status === 400) expectError(again, 'idTaken');
    else expectStored(again, id, outcome === 'revised' ? 2 : 1, outcome);
  }),
);

const NO_CREDENTIAL = { Authorization: null };
const MISTYPED = { Authorization: `Bearer plant_${'0'.repeat(36)}` };
const OTHER_MEDIA_TYPE = { 'Content-Type': 'text/plain' };
const TOO_LONG = { 'Content-Length': String(BODY_BYTES_SETTING_MAX + 1) };

/** A request that is rejected for its header section, so that its body, which is not even JSON, does not matter. */
function refused(error: ErrorName, id: string, title: string, changes: RequestChanges): Rule {
  return ours(id, title, async target => expectError(await send(target, '{', changes), error));
}

/** The challenge in the response to such a request. */
function challenge(id: string, title: string, value: string, changes: RequestChanges): Rule {
  return ours(id, title, async target =>
    expectHeader(await send(target, '{', changes), 'WWW-Authenticate', value),
  );
}

/** Every response has the common fields and names no software. */
function expectCommonFields(exchange: Exchange, status: number): void {
  expectStatus(exchange, status);
  expectHeader(exchange, 'Content-Type', 'application/json');
  expectHeader(exchange, 'X-Content-Type-Options', 'nosniff');
  expectHeader(exchange, 'Cache-Control', 'no-store');
  expectHeader(exchange, 'Server', undefined);
  expectHeader(exchange, 'X-Powered-By', undefined);
}

const CHALLENGE = 'Bearer realm="plant-store"';

/** What this plant store promises beyond the interface: bodies, repeated ids, header sections and response fields. */
export const OWN_RULES: readonly Rule[] = [
  ...ID_RULES,
  ...REPEAT_RULES,
  ...[...FAULTY_BODIES, ...OWN_FAULTY_BODIES].map(([error, fault, what, body, fixedIds]) =>
    ours(
      `refuse.${fault}`,
      `a body ${what} is answered with the error ${ERRORS[error].number}`,
      async target => expectError(await send(target, body(target.nextId())), error),
      fixedIds,
    ),
  ),
  ours('further-members', 'members beyond id, name and tag are ignored', async target => {
    const id = target.nextId();
    expectStored(await send(target, `{"id":${id},"name":"A","height":[1.5,{}]}`), id, 1, 'created');
    expectStored(await send(target, `{"id":${id},"name":"A","height":2}`), id, 1, 'unchanged');
  }),
  ours('every-fault-named', 'the message names every fault of a body at once', async target => {
    const exchange = await send(target, '{"id":1.5,"tag":null}');
    const { message } = expectErrorShape(exchange);
    const unnamed = ['id', 'name', 'tag'].filter(member => !new RegExp(`\\b${member}\\b`).test(message));
    expect(exchange, unnamed.length === 0, 'a message that names id, name and tag', `${unnamed} not named`);
  }),
  refused('noCredential', 'credential.missing', 'a request without a credential is refused', NO_CREDENTIAL),
  refused(
    'noCredential',
    'credential.repeated',
    'a request with two Authorization fields is refused, though each holds the token',
    { Authorization: ['Bearer <ACCESS_TOKEN>', 'Bearer <ACCESS_TOKEN>'] },
  ),
  refused('credentialRefused', 'credential.mistyped', 'a mistyped token is refused', MISTYPED),
  refused('notJsonMediaType', 'media-type.missing', 'a request without Content-Type is refused', {
    'Content-Type': null,
  }),
  refused('notJsonMediaType', 'media-type.other', 'another media type is refused', OTHER_MEDIA_TYPE),
  refused('notJsonMediaType', 'media-type.charset', 'another charset than utf-8 is refused', {
    'Content-Type': 'application/json; charset=iso-8859-1',
  }),
  refused('notJsonMediaType', 'media-type.repeated', 'two Content-Type fields are refused', {
    'Content-Type': ['application/json', 'application/json'],
  }),
  refused('contentEncoding', 'content-encoding', 'any Content-Encoding is refused', {
    'Content-Encoding': 'identity',
  }),
  refused(
    'bodyTooLarge',
    'body-size',
    'a body that says it is longer than any limit is refused before it arrives',
    TOO_LONG,
  ),
  refused('headersTooLarge', 'head-size', 'a head that is too large is refused', {
    'X-Padding': 'x'.repeat(HEADER_BYTES_MAX),
  }),
  refused('noSuchPath', 'path.slash', 'a slash at the end makes another path', { ':path': '/plants/' }),
  refused('noSuchPath', 'path.case', 'other letters make another path', { ':path': '/Plants' }),
  refused('noSuchPath', 'order.path-before-method', 'an unknown path is refused before the method', {
    ':path': '/no-such-path',
    ':method': 'PATCH',
  }),
  refused(
    'methodNotAllowed',
    'order.method-before-credential',
    'a method is refused before a missing credential',
    { ...NO_CREDENTIAL, ':method': 'PATCH' },
  ),
  refused(
    'noCredential',
    'order.credential-before-media-type',
    'a missing credential is refused before the media type',
    { ...NO_CREDENTIAL, ...OTHER_MEDIA_TYPE },
  ),
  refused('notJsonMediaType', 'order.media-type-before-size', 'the media type is refused before the size', {
    ...OTHER_MEDIA_TYPE,
    ...TOO_LONG,
  }),
  challenge(
    'credential.missing.challenge',
    'the challenge to a request without a credential names no error (RFC 6750 section 3.1)',
    CHALLENGE,
    NO_CREDENTIAL,
  ),
  challenge(
    'credential.mistyped.challenge',
    'the challenge to a refused token names invalid_token (RFC 6750 section 3.1)',
    `${CHALLENGE}, error="invalid_token", error_description="${ERRORS.credentialRefused.message}"`,
    MISTYPED,
  ),
  ours(
    'method.allow',
    'a method that /plants does not take is answered with Allow: POST and nothing else',
    async target => expectHeader(await send(target, '{', { ':method': 'PATCH' }), 'Allow', 'POST'),
  ),
  ours(
    'fields.kept',
    'the answer to a plant that is kept has the common fields and names no software',
    async target => expectCommonFields(await sendPlant(target), 200),
  ),
  ours(
    'fields.refused',
    'the answer to a body that is refused has the common fields and names no software',
    async target => expectCommonFields(await send(target, '{'), 400),
  ),
  ours('query', 'a query is ignored', async target => {
    const id = target.nextId();
    const body = newPlantJson({ id, name: 'A' });
    expectStored(await send(target, body, { ':path': '/plants?id=1' }), id, 1, 'created');
  }),
];
