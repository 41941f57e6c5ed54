import { ID_MAX, ID_MIN } from '../../src/core/contract/limits.ts';
import type { TestRequest } from './round-trip.ts';

/** One rule of the interface: a request, and the response that it must get. */
export interface Rule extends TestRequest {
  /** An id never changes and is never reused, since reports and lists of exceptions refer to it. */
  id: string;
  level: 'MUST' | 'SHOULD';
  title: string;
  source: string;
  /** A Plant is status 200 with the plant as sent; a rejection is a status from 400 to 499. */
  response: 'a Plant' | 'a rejection' | 'a Plant or a rejection' | 'a Plant or a 411';
  /** The plant id that the rule is about. Other rules get new ids. */
  plantId?: bigint;
  /** A body to send before the request, with the same plant id. */
  earlierBody?: string;
  /** The connection of an earlier request. By default, each request has a new one. */
  connection?: 'used';
}

type Row = [id: string, what: string, body: string, rest?: Partial<Rule>];

function rulesFrom(source: string, response: Rule['response'], rows: Row[]): Rule[] {
  return rows.map(([id, what, body, rest]) => {
    const title = `${what} gets ${response}`;
    return { id, level: 'MUST', title, source, response, body, ...rest };
  });
}

/** The shortest NewPlant. `<ID>` in a body is replaced by the plant id. */
export const PLANT = '{"id":<ID>,"name":"A"}';
const SHOULD: Partial<Rule> = { level: 'SHOULD' };
const TAGGED = '{"id":<ID>,"name":"A","tag":"B"}';

/** The interface leaves open which requests get which status, so such rules are this program's own. */
function ours(section: string): string {
  return `our own rule; the interface leaves the status open (${section})`;
}

/** @param text a JSON string, sent as the name and as the tag */
function withText(text: string): string {
  return `{"id":<ID>,"name":${text},"tag":${text}}`;
}

function withCredential(text: string): Partial<Rule> {
  return { credential: { kind: 'other', text } };
}

export const RULES: readonly Rule[] = [
  ...rulesFrom('interface, POST /plants, rule 1', 'a Plant', [
    ['create.status', 'a NewPlant with id, name and tag', TAGGED],
    ['create.tag.absent', 'a NewPlant without a tag', PLANT],
    ['create.json.member-order', 'a NewPlant in another order', '{"tag":"B","name":"A","id":<ID>}'],
    ['create.json.white-space', 'a NewPlant with white space', ' {\r\n\t"id" : <ID> ,"name" :\n"A"\t} '],
  ]),
  ...rulesFrom('our own rule; the interface does not exclude further members', 'a Plant', [
    [
      'create.json.further-member',
      'a NewPlant with a further member',
      '{"id":<ID>,"name":"A","height":3}',
      SHOULD,
    ],
  ]),
  // Ids that programs often round or reject.
  ...rulesFrom('interface, NewPlant, id', 'a Plant', [
    ['create.id.zero', 'the id 0', PLANT, { plantId: 0n }],
    ['create.id.negative', 'the id -1', PLANT, { plantId: -1n }],
    ['create.id.above-int32', 'the id 2^31, beyond 32 bits,', PLANT, { plantId: 2n ** 31n }],
    ['create.id.below-int32', 'the id -2^31 - 1, beyond 32 bits,', PLANT, { plantId: -(2n ** 31n) - 1n }],
    ['create.id.above-double', 'the id 2^61 + 1, which no double is,', PLANT, { plantId: 2n ** 61n + 1n }],
    ['create.id.int64-max', 'the largest int64', PLANT, { plantId: ID_MAX }],
    ['create.id.int64-min', 'the smallest int64', PLANT, { plantId: ID_MIN }],
  ]),
  ...rulesFrom('interface, Plant', 'a Plant', [
    ['create.text.empty', 'empty text', withText('""')],
    ['create.text.space', 'text with white space', withText(String.raw`"\t 1  2  "`)],
    ['create.text.case', 'text in mixed case', withText('"aLOE vera Var. CHINENSIS"')],
    ['create.text.non-ascii', 'text beyond ASCII', withText('"\u0131 \u00df \u690d"')],
    ['create.text.escaped', 'escaped text', withText(String.raw`"\u0049p\u00ea \ud83c\udf35 \"\\\/\n"`)],
    ['create.text.not-normalized', 'text in no Unicode normal form', withText('"e\u0302 \u00ea \ufb01"')],
    ['create.text.emoji', 'text with an emoji', withText('"1 \u{1f335} 2"')],
    ['create.text.invisible', 'text with invisible characters', withText('"1\u00ad2\u200b3\u00a04\ufeff5"')],
    ['create.text.quotes', 'text with quotes', withText(String.raw`"1\" '2' \\n\\\\ 3"`)],
    ['create.text.markup', 'text with HTML and % codes', withText('"<b>1</b> & &#38; %41+%2B"')],
    ['create.text.line-ends', 'text with CRLF and LF', withText(String.raw`"1\r\n2\n3"`)],
    ['create.text.digits', 'text of digits', withText('"42"')],
  ]),
  // The interface limits no lengths. So a server may reject a long text, but must not cut it.
  ...rulesFrom('interface, Plant', 'a Plant or a rejection', [
    ['create.text.length-100', 'text of 100 characters', withText(`"${'1-'.repeat(50)}"`)],
    ['create.text.length-1000', 'text of 1000 characters', withText(`"${'1-'.repeat(500)}"`)],
    ['create.text.length-10000', 'text of 10000 characters', withText(`"${'1-'.repeat(5000)}"`)],
  ]),
  // The interface does not say whether a server may reject an id that is already stored.
  ...rulesFrom('interface, POST /plants, rule 1', 'a Plant or a rejection', [
    ['create.stored-id.same', 'the same plant, sent again,', TAGGED, { earlierBody: TAGGED }],
    ['create.stored-id.other', 'another plant with a stored id', PLANT, { earlierBody: TAGGED }],
  ]),
  ...rulesFrom(ours('Authentication'), 'a rejection', [
    ['credential.missing', 'no credential', PLANT, { credential: { kind: 'none' } }],
    ['credential.unknown', 'an unknown token', PLANT, withCredential('Bearer no-such-token')],
    ['credential.other-scheme', 'another scheme', PLANT, withCredential('Basic cGxhbnQ6cw==')],
  ]),
  // What many client libraries send, and RFCs require servers to accept.
  ...rulesFrom('RFC 8259, section 11', 'a Plant', [
    [
      'media-type.charset',
      'a media type with a charset',
      PLANT,
      { mediaType: 'application/json; charset=utf-8' },
    ],
  ]),
  ...rulesFrom('RFC 9110, section 11.1', 'a Plant', [
    [
      'credential.scheme-case',
      'the scheme in lower case',
      PLANT,
      { credential: { kind: 'token', scheme: 'bearer' } },
    ],
  ]),
  // A server must read chunks, but may reject a body without a length by 411 (section 6.3).
  ...rulesFrom('RFC 9112, section 7.1', 'a Plant or a 411', [
    ['http.chunked.read', 'a chunked body', PLANT, { framing: 'chunked' }],
  ]),
  ...rulesFrom('our own rule; RFC 9112, section 6.3, permits 411', 'a Plant', [
    ['http.chunked.accepted', 'a chunked body', PLANT, { ...SHOULD, framing: 'chunked' }],
  ]),
  ...rulesFrom('RFC 9112, section 9.3', 'a Plant', [
    ['http.second-request', 'a second request on a connection', PLANT, { connection: 'used' }],
  ]),
  // Each body is no NewPlant for exactly one reason.
  ...rulesFrom(ours('Errors'), 'a rejection', [
    ['reject.empty', 'an empty body', ''],
    ['reject.not-json', 'incomplete JSON', '{"id":<ID>,"name":"A'],
    ['reject.array', 'an array', `[${PLANT}]`],
    ['reject.id-missing', 'a body without id', '{"name":"A"}'],
    ['reject.id-null', 'null as id', '{"id":null,"name":"A"}'],
    ['reject.id-string', 'a string as id', '{"id":"<ID>","name":"A"}'],
    ['reject.id-fraction', 'a fraction as id', '{"id":<ID>.5,"name":"A"}'],
    ['reject.id-above-int64', 'the id 2^63, above int64,', `{"id":${ID_MAX + 1n},"name":"A"}`],
    ['reject.id-below-int64', 'the id -2^63 - 1, below int64,', `{"id":${ID_MIN - 1n},"name":"A"}`],
    ['reject.name-missing', 'a body without name', '{"id":<ID>}'],
    ['reject.name-null', 'null as name', '{"id":<ID>,"name":null}'],
    ['reject.name-number', 'a number as name', '{"id":<ID>,"name":1}'],
    ['reject.tag-null', 'null as tag', '{"id":<ID>,"name":"A","tag":null}'],
    ['reject.tag-number', 'a number as tag', '{"id":<ID>,"name":"A","tag":1}'],
    ['media-type.other', 'another media type', PLANT, { ...SHOULD, mediaType: 'text/plain' }],
  ]),
];
