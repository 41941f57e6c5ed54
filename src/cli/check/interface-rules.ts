import { ID_MAX, ID_MIN } from '../../contract/limits.ts';
import { newPlantJson, type Plant } from '../../contract/plant.ts';
import { type Exchange, send, sendPlant } from './exchange.ts';
import { expectErrorShape, expectJsonMediaType, expectMember, expectStatus } from './expectations.ts';
import { FAULTY_BODIES } from './faulty-bodies.ts';
import { NotChecked, type Rule, type Target } from './rule.ts';

const RULE_1 = 'interface, POST /plants, rule 1';
const RULE_2 = 'interface, POST /plants, rule 2';
const RESPONSES = 'interface, POST /plants, responses';
const PLANT_SHAPE = 'interface, Plant';
const NEW_PLANT_SHAPE = 'interface, NewPlant';

function must(id: string, title: string, source: string, check: Rule['check']): Rule {
  return { id, level: 'MUST', title, source, check };
}

const NO_NEIGHBOURS = 'the ids that may be used hold no two that are one double, as those beyond 2^53 are';

/**
 * Ids that programs tend to lose. They are the same in every run, and so is the rest of the plant: a server that stores
 * them takes the second for a repeat of the first, which most give 200 like any valid NewPlant.
 */
const IDS: [name: string, what: string, id: bigint][] = [
  ['zero', 'the id 0', 0n],
  ['negative', 'the id -1', -1n],
  ['above-int32', 'the id 2^31, beyond 32 bits,', 2n ** 31n],
  ['below-int32', 'the id -2^31 - 1, beyond 32 bits,', -(2n ** 31n) - 1n],
  ['above-double', 'the id 2^53 + 1, which no double holds,', 2n ** 53n + 1n],
  ['int64-max', 'the largest int64 as its id', ID_MAX],
  ['int64-min', 'the smallest int64 as its id', ID_MIN],
];

const ID_RULES = IDS.map(([name, what, id]): Rule => {
  const check = async (target: Target): Promise<void> => {
    const exchange = await send(target, newPlantJson({ id, name: 'A' }));
    if (exchange.status === 400 && (await isTakenId(exchange, target))) {
      throw new NotChecked(`the id ${id} seems to be stored already, and the server takes no id twice`);
    }
    expectStatus(exchange, 200);
  };
  const rule = must(`create.id.${name}`, `a plant with ${what} is created`, NEW_PLANT_SHAPE, check);
  return { ...rule, fixedIds: [id] };
});

/** Whether the server rejects an id that is there already with the error of this response. */
async function isTakenId({ body }: Exchange, target: Target): Promise<boolean> {
  const id = target.nextId();
  const first = await send(target, newPlantJson({ id, name: 'A' }));
  const second = await send(target, newPlantJson({ id, name: 'B' }));
  return first.status === 200 && second.status === 400 && errorOf(second.body) === errorOf(body);
}

function errorOf(body: Buffer): unknown {
  return /"error"\s*:\s*(-?[0-9]+)/.exec(body.toString())?.[1];
}

/** Names that are the same string however they are written or stored, as JSON. */
const NAMES: [rule: string, what: string, nameJson: string][] = [
  ['as-sent', 'a plain name', '"Dracaena trifasciata"'],
  ['empty', 'an empty name', '""'],
  ['space', 'a name with white space at both ends', '"  Aloe "'],
  ['non-ascii', 'a name beyond ASCII and beyond 16 bits', '"\u012ape\u0302 \u690d\u7269 \u{1f335}"'],
  ['escaped', 'a name written with the escapes of JSON', String.raw`"\u0049p\u00ea \ud83c\udf35 \"\\\/\n"`],
];

const NAME_RULES = NAMES.map(([rule, what, nameJson]) =>
  must(`create.name.${rule}`, `${what} comes back as it was sent`, PLANT_SHAPE, async target => {
    const exchange = await send(target, `{"id":${target.nextId()},"name":${nameJson}}`);
    expectStatus(exchange, 200);
    expectMember(exchange, 'name', JSON.parse(nameJson));
  }),
);

const TAGS: [rule: string, title: string, plant: Plant][] = [
  ['as-sent', 'a tag comes back as it was sent', { name: 'A', tag: 'houseplant' }],
  ['absent', 'a plant sent without a tag comes back without one', { name: 'A' }],
  ['empty', 'an empty tag comes back as an empty tag', { name: 'A', tag: '' }],
];

const TAG_RULES = TAGS.map(([rule, title, plant]) =>
  must(`create.tag.${rule}`, title, PLANT_SHAPE, async target => {
    const exchange = await sendPlant(target, plant);
    expectStatus(exchange, 200);
    expectMember(exchange, 'tag', plant.tag);
  }),
);

/** What the interface itself says, and nothing else: the rules that every plant store must hold. */
export const INTERFACE_RULES: readonly Rule[] = [
  must('create.status', 'a valid NewPlant is answered 200', RULE_1, async target =>
    expectStatus(await sendPlant(target, { name: 'A', tag: 'B' }), 200),
  ),
  must('create.media-type', 'the answer to a valid NewPlant is application/json', RESPONSES, async target =>
    expectJsonMediaType(await sendPlant(target, { name: 'A', tag: 'B' })),
  ),
  must('create.no-id', 'the Plant that answers has no id', PLANT_SHAPE, async target => {
    const exchange = await sendPlant(target);
    expectStatus(exchange, 200);
    expectMember(exchange, 'id', undefined);
  }),
  must(
    'create.id.neighbours-above-double',
    'two plants whose ids are one double are both created',
    NEW_PLANT_SHAPE,
    async target => {
      if (target.neighbours === undefined) throw new NotChecked(NO_NEIGHBOURS);
      const [first, second] = target.neighbours;
      expectStatus(await send(target, newPlantJson({ id: first, name: 'A' })), 200);
      expectStatus(await send(target, newPlantJson({ id: second, name: 'B' })), 200);
    },
  ),
  must(
    'create.json.member-order',
    'the members of a NewPlant may come in any order',
    `${RULE_1}; RFC 8259 section 4`,
    async target => expectStatus(await send(target, `{"tag":"B","name":"A","id":${target.nextId()}}`), 200),
  ),
  must(
    'create.json.white-space',
    'white space between the tokens of a NewPlant means nothing',
    `${RULE_1}; RFC 8259 section 2`,
    async target =>
      expectStatus(await send(target, ` {\r\n\t"id" : ${target.nextId()} ,"name" :\n"A"\t} `), 200),
  ),
  ...ID_RULES,
  ...NAME_RULES,
  ...TAG_RULES,
  must('error.media-type', 'an answer of 400 is application/json', RESPONSES, async target => {
    const exchange = await send(target, '{"id":');
    if (exchange.status === 400) expectJsonMediaType(exchange);
  }),
  ...FAULTY_BODIES.map(([, fault, what, body]) =>
    must(
      `error.shape.${fault}`,
      `when a body ${what} is answered 400, the answer is an Error`,
      RULE_2,
      async target => {
        const exchange = await send(target, body(target.nextId()));
        if (exchange.status === 400) expectErrorShape(exchange);
      },
    ),
  ),
];
