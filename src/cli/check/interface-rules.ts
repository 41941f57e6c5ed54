import { ID_MAX, ID_MIN } from '../../contract/limits.ts';
import { type Exchange, PLANT, send, withId } from './exchange.ts';
import { expectJsonMediaType, expectMember, expectSent, expectStatus, isRejected } from './expectations.ts';
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
/** Names and tags that must come back as the same string. A text is sent as both. */
const MEMBERS: [member: 'name' | 'tag' | 'text', rule: string, what: string, text: string][] = [
  ['name', 'as-sent', 'a plain name', '{"id":<ID>,"name":"Dracaena trifasciata"}'],
  ['name', 'empty', 'an empty name', '{"id":<ID>,"name":""}'],
  ['name', 'space', 'a name with white space at both ends', '{"id":<ID>,"name":"  Aloe "}'],
  ['name', 'non-ascii', 'a name beyond ASCII', '{"id":<ID>,"name":"\u012ape\u0302 \u690d\u7269 \u{1f335}"}'],
  ['name', 'escaped', 'an escaped name', ESCAPED],
  ['tag', 'as-sent', 'a tag', '{"id":<ID>,"name":"A","tag":"houseplant"}'],
  ['tag', 'absent', 'an absent tag', PLANT],
  ['tag', 'empty', 'an empty tag', '{"id":<ID>,"name":"A","tag":""}'],
  ['text', 'space', 'text with outer and repeated white space', String.raw`"\t 1  2  "`],
  ['text', 'case', 'text in mixed case', '"aLOE vera Var. CHINENSIS"'],
  ['text', 'non-ascii', 'text beyond ASCII', '"\u0131 \u00df \u690d"'],
  ['text', 'not-normalized', 'text in no Unicode normal form', '"e\u0302 \u00ea \ufb01"'],
  ['text', 'emoji', 'text with an emoji', '"1 \u{1f335} 2"'],
  ['text', 'invisible', 'text with invisible characters', '"1\u00ad2\u200b3\u00a04\ufeff5"'],
  ['text', 'quotes', 'text with quotes and backslashes', String.raw`"1\" '2' \\n\\\\ 3"`],
  ['text', 'markup', 'text with HTML and percent-encoding', '"<b>1</b> & &#38; %41+%2B"'],
  ['text', 'line-ends', 'text with CRLF and LF', String.raw`"1\r\n2\n3"`],
  ['text', 'digits', 'text of digits', '"42"'],
  ['text', 'length-100', 'text of 100 characters', `"${'1-'.repeat(50)}"`],
  ['text', 'length-1000', 'text of 1000 characters', `"${'1-'.repeat(500)}"`],
  ['text', 'length-10000', 'text of 10000 characters', `"${'1-'.repeat(5000)}"`],
];

const MEMBER_RULES = MEMBERS.map(([member, rule, what, text]) => {
  const isBoth = member === 'text';
  const body = isBoth ? `{"id":<ID>,"name":${text},"tag":${text}}` : text;
  const title = `${what} is unchanged in the response`;
  return must(`create.${member}.${rule}`, title, PLANT_SHAPE, async target => {
    const exchange = await send(target, body);
    // The interface shows no limits of lengths. So a server may reject a long text, but not cut it.
    if (rule.startsWith('length-') && isRejected(exchange))
      throw new NotChecked(`the server rejects this length with ${exchange.status}, which it may`);
    expectSent(exchange, body, isBoth ? undefined : [member]);
  });
});

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
  must('create.stored-id', 'a stored id gets its new Plant or is rejected', RULE_1, async target => {
    expectStatus(await send(target, TAGGED), 200);
    for (const text of [TAGGED, PLANT]) {
      const exchange = await send(target, text);
      if (!isRejected(exchange)) expectSent(exchange, text);
    }
  }),
  must('error.media-type', 'a response with the status 400 is application/json', RESPONSES, async target => {
    for (const text of ['{"id":', '{}']) {
      const exchange = await send(target, text);
      if (exchange.status === 400) expectJsonMediaType(exchange);
    }
  }),
  ...FAULTY_BODIES.map(([, fault, what, text, encoding]) => {
    const title = `if a body ${what} gets the status 400, the response is an Error`;
    return must(`error.shape.${fault}`, title, RULE_2, async target =>
      isRejected(await send(target, text, {}, encoding)),
    );
  }),
];
