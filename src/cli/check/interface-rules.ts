import { ID_MAX, ID_MIN } from '../../contract/limits.ts';
import { type Exchange, PLANT, send, withId } from './exchange.ts';
import { expectErrorShape, expectJsonMediaType, expectMember, expectStatus } from './expectations.ts';
import { FAULTY_BODIES } from './faulty-bodies.ts';
import { NotChecked, type Rule, type Target } from './rule.ts';

const RULE_1 = 'interface, POST /plants, rule 1';
const JSON_ORDER = `${RULE_1}; RFC 8259 section 4`;
const JSON_SPACE = `${RULE_1}; RFC 8259 section 2`;
const RULE_2 = 'interface, POST /plants, rule 2';
const RESPONSES = 'interface, POST /plants, responses';
const PLANT_SHAPE = 'interface, Plant';
const NEW_PLANT_SHAPE = 'interface, NewPlant';

function must(id: string, title: string, source: string, check: Rule['check']): Rule {
  return { id, level: 'MUST', title, source, check };
}

function created(id: string, title: string, source: string, text: string): Rule {
  return must(id, title, source, async target => expectStatus(await send(target, text), 200));
}

/**
 * Ids that programs often round or reject. Every run sends the same plants, so most servers respond
 * to a second run with 200 too.
 */
const IDS: [name: string, what: string, id: bigint][] = [
  ['zero', 'the id 0', 0n],
  ['negative', 'the id -1', -1n],
  ['above-int32', 'the id 2^31, beyond 32 bits,', 2n ** 31n],
  ['below-int32', 'the id -2^31 - 1, beyond 32 bits,', -(2n ** 31n) - 1n],
  ['above-double', 'the id 2^53 + 1, which a double cannot represent,', 2n ** 53n + 1n],
  ['int64-max', 'the largest int64 as its id', ID_MAX],
  ['int64-min', 'the smallest int64 as its id', ID_MIN],
];

const ID_RULES = IDS.map(([name, what, id]): Rule => {
  const check = async (target: Target): Promise<void> => {
    const exchange = await send(target, withId(id));
    if (exchange.status === 400 && (await isTakenId(exchange, target))) {
      throw new NotChecked(`the id ${id} seems to be stored already, and the server accepts each id once`);
    }
    expectStatus(exchange, 200);
  };
  const rule = must(`create.id.${name}`, `a plant with ${what} is created`, NEW_PLANT_SHAPE, check);
  return { ...rule, fixedIds: [id] };
});

/** Whether the server rejects an id that is already stored with the error of this response. */
async function isTakenId({ body }: Exchange, target: Target): Promise<boolean> {
  const first = await send(target);
  const second = await send(target, withId(target.id, 'B'));
  return first.status === 200 && second.status === 400 && errorOf(second.body) === errorOf(body);
}

function errorOf(body: Buffer): unknown {
  return /"error"\s*:\s*(-?[0-9]+)/.exec(body.toString())?.[1];
}

const ESCAPED = String.raw`{"id":<ID>,"name":"\u0049p\u00ea \ud83c\udf35 \"\\\/\n"}`;
/** Names and tags that must come back as the same string. */
const MEMBERS: [member: 'name' | 'tag', rule: string, what: string, text: string][] = [
  ['name', 'as-sent', 'a plain name', '{"id":<ID>,"name":"Dracaena trifasciata"}'],
  ['name', 'empty', 'an empty name', '{"id":<ID>,"name":""}'],
  ['name', 'space', 'a name with white space at both ends', '{"id":<ID>,"name":"  Aloe "}'],
  ['name', 'non-ascii', 'a name beyond ASCII', '{"id":<ID>,"name":"\u012ape\u0302 \u690d\u7269 \u{1f335}"}'],
  ['name', 'escaped', 'an escaped name', ESCAPED],
  ['tag', 'as-sent', 'a tag', '{"id":<ID>,"name":"A","tag":"houseplant"}'],
  ['tag', 'absent', 'an absent tag', PLANT],
  ['tag', 'empty', 'an empty tag', '{"id":<ID>,"name":"A","tag":""}'],
];

const MEMBER_RULES = MEMBERS.map(([member, rule, what, text]) =>
  must(`create.${member}.${rule}`, `${what} is unchanged in the response`, PLANT_SHAPE, async target => {
    const exchange = await send(target, text);
    expectStatus(exchange, 200);
    expectMember(exchange, member, JSON.parse(text.replace('<ID>', '0'))[member]);
  }),
);

const NEIGHBOURS = 'create.id.neighbours-above-double';
const NO_NEIGHBOURS =
  '--ids contains no two consecutive ids with the same double value, which exist beyond 2^53';
const TAGGED = '{"id":<ID>,"name":"A","tag":"B"}';
const REORDERED = '{"tag":"B","name":"A","id":<ID>}';
const SPACED = ' {\r\n\t"id" : <ID> ,"name" :\n"A"\t} ';

/** The rules that the interface itself requires of every plant store. */
export const INTERFACE_RULES: readonly Rule[] = [
  created('create.status', 'a valid NewPlant gets the status 200', RULE_1, TAGGED),
  created('create.json.member-order', 'members are accepted in any order', JSON_ORDER, REORDERED),
  created('create.json.white-space', 'white space between JSON tokens is ignored', JSON_SPACE, SPACED),
  must('create.media-type', 'the response to a valid NewPlant is application/json', RESPONSES, async target =>
    expectJsonMediaType(await send(target, TAGGED)),
  ),
  must('create.no-id', 'the Plant in the response has no id', PLANT_SHAPE, async target => {
    const exchange = await send(target);
    expectStatus(exchange, 200);
    expectMember(exchange, 'id', undefined);
  }),
  must(NEIGHBOURS, 'two plants whose ids round to one double are created', NEW_PLANT_SHAPE, async target => {
    if (target.neighbours === undefined) throw new NotChecked(NO_NEIGHBOURS);
    const [first, second] = target.neighbours;
    expectStatus(await send(target, withId(first)), 200);
    expectStatus(await send(target, withId(second, 'B')), 200);
  }),
  ...ID_RULES,
  ...MEMBER_RULES,
  must('error.media-type', 'a response with the status 400 is application/json', RESPONSES, async target => {
    const exchange = await send(target, '{"id":');
    if (exchange.status === 400) expectJsonMediaType(exchange);
  }),
  ...FAULTY_BODIES.map(([, fault, what, text, encoding]) => {
    const title = `if a body ${what} gets the status 400, the response is an Error`;
    return must(`error.shape.${fault}`, title, RULE_2, async target => {
      const exchange = await send(target, text, {}, encoding);
      if (exchange.status === 400) expectErrorShape(exchange);
    });
  }),
];
