import { ERRORS, type ErrorName } from '../../contract/errors.ts';
import { ID_MAX, ID_MIN } from '../../contract/limits.ts';
import { newPlantJson, type Plant } from '../../contract/plant.ts';
import { send } from './exchange.ts';
import { expectErrorShape, expectHeader, expectStatus, mismatch } from './expectations.ts';
import { FAULTY_BODIES } from './faulty-bodies.ts';
import { expectError, expectKept } from './own-answers.ts';
import type { Rule } from './rule.ts';

const SOURCE = 'this plant store, what is answered where the interface is silent';

/** Ids as they are written, and the digits that Plant-Id must give. */
const IDS: { name: string; title: string; text: string; digits: bigint }[] = [
  {
    name: 'above-double',
    title: 'the id 2^53 + 1 is kept',
    text: '9007199254740993',
    digits: 2n ** 53n + 1n,
  },
  {
    name: 'below-double',
    title: 'the id -2^53 - 1 is kept',
    text: '-9007199254740993',
    digits: -(2n ** 53n) - 1n,
  },
  {
    name: 'int64-max',
    title: 'the largest int64 is kept as an id',
    text: '9223372036854775807',
    digits: ID_MAX,
  },
  {
    name: 'int64-min',
    title: 'the smallest int64 is kept as an id',
    text: '-9223372036854775808',
    digits: ID_MIN,
  },
  { name: 'zero-fraction', title: 'the id 7.0 is the integer 7', text: '7.0', digits: 7n },
  { name: 'exponent', title: 'the id 7e3 is the integer 7000', text: '7e3', digits: 7000n },
  { name: 'negative-exponent', title: 'the id 7000e-3 is the integer 7', text: '7000e-3', digits: 7n },
  { name: 'negative-zero', title: 'the id -0 is the integer 0', text: '-0', digits: 0n },
];

const ID_RULES: Rule[] = IDS.map(({ name, title, text, digits }) => ({
  id: `ours.id.${name}`,
  level: 'MUST',
  title: `${title}, digit for digit in Plant-Id`,
  source: SOURCE,
  fixedIds: [digits],
  check: async target => {
    const exchange = await send(target, `{"id":${text},"name":"A"}`);
    expectStatus(exchange, 200);
    expectHeader(exchange, 'Plant-Id', String(digits));
  },
}));

/** A body that is refused with an error of the catalogue. */
interface OwnFault {
  fault: string;
  what: string;
  error: ErrorName;
  /** What a server that takes the body might make of an id that is written in it. */
  fixedIds?: readonly bigint[];
  body(id: bigint): string | Uint8Array;
}

/** Faults that the interface leaves open, or that its shapes do not name. */
const OWN_FAULTS: OwnFault[] = [
  {
    fault: 'byte-order-mark',
    what: 'that begins with a byte order mark',
    error: 'notJson',
    body: id => `\ufeff{"id":${id},"name":"A"}`,
  },
  {
    fault: 'utf16',
    what: 'in UTF-16',
    error: 'notJson',
    body: id => Buffer.from(`{"id":${id},"name":"A"}`, 'utf16le'),
  },
  {
    fault: 'id-tiny-fraction',
    what: 'with an id that is 10^-22 above an integer, for which a double takes it,',
    error: 'notNewPlant',
    body: id => `{"id":${id}.0000000000000000000001,"name":"A"}`,
  },
  {
    fault: 'id-underflow',
    what: 'with 1e-400 as id, which a double takes for 0,',
    error: 'notNewPlant',
    fixedIds: [0n],
    body: () => '{"id":1e-400,"name":"A"}',
  },
  {
    fault: 'id-fraction-above-double',
    what: 'with 9007199254740993.5 as id, which a double takes for an integer,',
    error: 'notNewPlant',
    fixedIds: [2n ** 53n + 1n, 2n ** 53n + 2n],
    body: () => '{"id":9007199254740993.5,"name":"A"}',
  },
  {
    fault: 'id-repeated',
    what: 'that gives the id twice',
    error: 'notNewPlant',
    body: id => `{"id":${id},"id":${id},"name":"A"}`,
  },
  {
    fault: 'further-member-repeated',
    what: 'that gives a further member twice',
    error: 'notNewPlant',
    body: id => `{"id":${id},"name":"A","height":1,"height":2}`,
  },
  {
    fault: 'name-u0000',
    what: 'with U+0000 in the name',
    error: 'notNewPlant',
    body: id => String.raw`{"id":${id},"name":"A\u0000B"}`,
  },
  {
    fault: 'tag-unpaired-surrogate',
    what: 'with an unpaired surrogate in the tag',
    error: 'notNewPlant',
    body: id => String.raw`{"id":${id},"name":"A","tag":"\ud83c"}`,
  },
];

const FAULTS: OwnFault[] = [
  ...FAULTY_BODIES.map(
    ({ notJson, ...rest }): OwnFault => ({ ...rest, error: notJson ? 'notJson' : 'notNewPlant' }),
  ),
  ...OWN_FAULTS,
];

const FAULT_RULES: Rule[] = FAULTS.map(({ fault, what, error, fixedIds = [], body }) => ({
  id: `ours.refuse.${fault}`,
  level: 'MUST',
  title: `a body ${what} is answered with the error ${ERRORS[error].number}`,
  source: SOURCE,
  fixedIds,
  check: async target => expectError(await send(target, body(target.nextId())), error),
}));

/** A plant, what is sent after it under the same id, and what becomes of that. */
const REPEATS: {
  name: string;
  title: string;
  first: Plant;
  second: Plant;
  outcome: 'unchanged' | 'revised';
}[] = [
  {
    name: 'same',
    title: 'a plant sent again is unchanged, and no further revision is made',
    first: { name: 'A', tag: 'B' },
    second: { name: 'A', tag: 'B' },
    outcome: 'unchanged',
  },
  {
    name: 'other-name',
    title: 'another name under the same id is its second revision',
    first: { name: 'A' },
    second: { name: 'B' },
    outcome: 'revised',
  },
  {
    name: 'tag-removed',
    title: 'no tag instead of an empty one is another content',
    first: { name: 'A', tag: '' },
    second: { name: 'A' },
    outcome: 'revised',
  },
];

const REPEAT_RULES: Rule[] = REPEATS.map(({ name, title, first, second, outcome }) => ({
  id: `ours.repeat.${name}`,
  level: 'MUST',
  title: outcome === 'revised' ? `${title}, or is refused where ids are write-once` : title,
  source: SOURCE,
  check: async target => {
    const id = target.nextId();
    expectKept(await send(target, newPlantJson({ id, ...first })), id, 1, 'created');
    const again = await send(target, newPlantJson({ id, ...second }));
    if (outcome === 'revised' && again.status === 400) expectError(again, 'idTaken');
    else expectKept(again, id, outcome === 'revised' ? 2 : 1, outcome);
  },
}));

/** How this plant store reads bodies, and what it makes of a repeated id. */
export const OWN_BODY_RULES: readonly Rule[] = [
  ...ID_RULES,
  ...REPEAT_RULES,
  ...FAULT_RULES,
  {
    id: 'ours.further-members',
    level: 'MUST',
    title: 'members beyond id, name and tag are ignored',
    source: SOURCE,
    check: async target => {
      const id = target.nextId();
      expectKept(await send(target, `{"id":${id},"name":"A","height":[1.5,{}]}`), id, 1, 'created');
      expectKept(await send(target, `{"id":${id},"name":"A","height":2}`), id, 1, 'unchanged');
    },
  },
  {
    id: 'ours.every-fault-named',
    level: 'MUST',
    title: 'the message names every fault of a body at once',
    source: SOURCE,
    check: async target => {
      const exchange = await send(target, '{"id":1.5,"tag":null}');
      const { message } = expectErrorShape(exchange);
      const unnamed = ['id', 'name', 'tag'].filter(member => !new RegExp(`\\b${member}\\b`).test(message));
      if (unnamed.length > 0)
        throw mismatch(exchange, 'a message that names id, name and tag', `${unnamed} not named`);
    },
  },
];
