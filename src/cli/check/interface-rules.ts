import { ID_MAX, ID_MIN } from '../../contract/limits.ts';
import { newPlantJson } from '../../contract/plant.ts';
import { type Exchange, send } from './exchange.ts';
import { expectErrorShape, expectJsonMediaType, expectMember, expectStatus } from './expectations.ts';
import { FAULTY_BODIES } from './faulty-bodies.ts';
import { NotChecked } from './not-checked.ts';
import type { Rule } from './rule.ts';
import type { Target } from './target.ts';

const RULE_1 = 'interface, POST /plants, rule 1';
const RULE_2 = 'interface, POST /plants, rule 2';
const RESPONSES = 'interface, POST /plants, responses';
const PLANT_SHAPE = 'interface, Plant';
const NEW_PLANT_SHAPE = 'interface, NewPlant';

/**
 * Ids that programs tend to lose. They are the same in every run, and so is the rest of the plant: a server that keeps
 * them takes the second for a repeat of the first, which most give 200 like any valid NewPlant.
 */
const IDS: { name: string; title: string; id: bigint }[] = [
  { name: 'zero', title: 'a plant with the id 0 is created', id: 0n },
  { name: 'negative', title: 'a plant with the id -1 is created', id: -1n },
  { name: 'above-int32', title: 'a plant with the id 2^31, beyond 32 bits, is created', id: 2n ** 31n },
  {
    name: 'below-int32',
    title: 'a plant with the id -2^31 - 1, beyond 32 bits, is created',
    id: -(2n ** 31n) - 1n,
  },
  {
    name: 'above-double',
    title: 'a plant with the id 2^53 + 1, which no double holds, is created',
    id: 2n ** 53n + 1n,
  },
  { name: 'int64-max', title: 'a plant with the largest int64 as its id is created', id: ID_MAX },
  { name: 'int64-min', title: 'a plant with the smallest int64 as its id is created', id: ID_MIN },
];

const ID_RULES: Rule[] = IDS.map(({ name, title, id }) => ({
  id: `create.id.${name}`,
  level: 'MUST',
  title,
  source: NEW_PLANT_SHAPE,
  fixedIds: [id],
  check: async target => {
    const exchange = await send(target, newPlantJson({ id, name: 'A' }));
    if (exchange.status === 400 && (await isTakenId(exchange, target))) {
      throw new NotChecked(`the id ${id} seems to be stored already, and the server takes no id twice`);
    }
    expectStatus(exchange, 200);
  },
}));

/** Whether the server refuses an id that is there already with the error of this answer. */
async function isTakenId({ body }: Exchange, target: Target): Promise<boolean> {
  const id = target.nextId();
  const first = await send(target, newPlantJson({ id, name: 'A' }));
  const second = await send(target, newPlantJson({ id, name: 'B' }));
  return first.status === 200 && second.status === 400 && errorOf(second.body) === errorOf(body);
}

function errorOf(body: Buffer): unknown {
  return /"error"\s*:\s*(-?[0-9]+)/.exec(body.toString())?.[1];
}

/** Names that are the same string however they are written or stored. */
const NAMES: { rule: string; what: string; nameJson: string }[] = [
  { rule: 'as-sent', what: 'a plain name', nameJson: '"Dracaena trifasciata"' },
  { rule: 'empty', what: 'an empty name', nameJson: '""' },
  { rule: 'space', what: 'a name with white space at both ends', nameJson: '"  Aloe "' },
  {
    rule: 'non-ascii',
    what: 'a name beyond ASCII and beyond 16 bits',
    nameJson: '"\u012ape\u0302 \u690d\u7269 \u{1f335}"',
  },
  {
    rule: 'escaped',
    what: 'a name written with the escapes of JSON',
    nameJson: String.raw`"\u0049p\u00ea \ud83c\udf35 \"\\\/\n"`,
  },
];

const NAME_RULES: Rule[] = NAMES.map(({ rule, what, nameJson }) => ({
  id: `create.name.${rule}`,
  level: 'MUST',
  title: `${what} comes back as it was sent`,
  source: PLANT_SHAPE,
  check: async target => {
    const exchange = await send(target, `{"id":${target.nextId()},"name":${nameJson}}`);
    expectStatus(exchange, 200);
    expectMember(exchange, 'name', JSON.parse(nameJson));
  },
}));

const TAGS: { rule: string; what: string; tag: string | undefined }[] = [
  { rule: 'as-sent', what: 'a tag comes back as it was sent', tag: 'houseplant' },
  { rule: 'absent', what: 'a plant sent without a tag comes back without one', tag: undefined },
  { rule: 'empty', what: 'an empty tag comes back as an empty tag', tag: '' },
];

const TAG_RULES: Rule[] = TAGS.map(({ rule, what, tag }) => ({
  id: `create.tag.${rule}`,
  level: 'MUST',
  title: what,
  source: PLANT_SHAPE,
  check: async target => {
    const tagJson = tag === undefined ? '' : `,"tag":${JSON.stringify(tag)}`;
    const exchange = await send(target, `{"id":${target.nextId()},"name":"A"${tagJson}}`);
    expectStatus(exchange, 200);
    expectMember(exchange, 'tag', tag);
  },
}));

const CREATE_RULES: Rule[] = [
  {
    id: 'create.status',
    level: 'MUST',
    title: 'a valid NewPlant is answered 200',
    source: RULE_1,
    check: async target =>
      expectStatus(await send(target, newPlantJson({ id: target.nextId(), name: 'A', tag: 'B' })), 200),
  },
  {
    id: 'create.media-type',
    level: 'MUST',
    title: 'the answer to a valid NewPlant is application/json',
    source: RESPONSES,
    check: async target =>
      expectJsonMediaType(await send(target, newPlantJson({ id: target.nextId(), name: 'A', tag: 'B' }))),
  },
  {
    id: 'create.no-id',
    level: 'MUST',
    title: 'the Plant that answers has no id',
    source: PLANT_SHAPE,
    check: async target => {
      const exchange = await send(target, newPlantJson({ id: target.nextId(), name: 'A' }));
      expectStatus(exchange, 200);
      expectMember(exchange, 'id', undefined);
    },
  },
  {
    id: 'create.id.neighbours-above-double',
    level: 'MUST',
    title: 'two plants whose ids are one double are both created',
    source: NEW_PLANT_SHAPE,
    check: async target => {
      const [first, second] = target.neighbours();
      expectStatus(await send(target, newPlantJson({ id: first, name: 'A' })), 200);
      expectStatus(await send(target, newPlantJson({ id: second, name: 'B' })), 200);
    },
  },
  {
    id: 'create.json.member-order',
    level: 'MUST',
    title: 'the members of a NewPlant may come in any order',
    source: `${RULE_1}; RFC 8259 section 4`,
    check: async target =>
      expectStatus(await send(target, `{"tag":"B","name":"A","id":${target.nextId()}}`), 200),
  },
  {
    id: 'create.json.white-space',
    level: 'MUST',
    title: 'white space between the tokens of a NewPlant means nothing',
    source: `${RULE_1}; RFC 8259 section 2`,
    check: async target =>
      expectStatus(await send(target, ` {\r\n\t"id" : ${target.nextId()} ,"name" :\n"A"\t} `), 200),
  },
];

const ERROR_RULES: Rule[] = [
  {
    id: 'error.media-type',
    level: 'MUST',
    title: 'an answer of 400 is application/json',
    source: RESPONSES,
    check: async target => {
      const exchange = await send(target, '{"id":');
      if (exchange.status === 400) expectJsonMediaType(exchange);
    },
  },
  ...FAULTY_BODIES.map(
    ({ fault, what, body }): Rule => ({
      id: `error.shape.${fault}`,
      level: 'MUST',
      title: `when a body ${what} is answered 400, the answer is an Error`,
      source: RULE_2,
      check: async target => {
        const exchange = await send(target, body(target.nextId()));
        if (exchange.status === 400) expectErrorShape(exchange);
      },
    }),
  ),
];

/** What the interface itself says, and nothing else: the rules that every plant store must keep. */
export const INTERFACE_RULES: readonly Rule[] = [
  ...CREATE_RULES,
  ...ID_RULES,
  ...NAME_RULES,
  ...TAG_RULES,
  ...ERROR_RULES,
];
