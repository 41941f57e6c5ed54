import type { ErrorName } from '../../contract/errors.ts';
import { ID_MAX, ID_MIN } from '../../contract/limits.ts';
import { PLANT, withId } from './exchange.ts';

/**
 * A body that is not a NewPlant for exactly one reason. `fault` never changes, because it is part
 * of rule ids. `what` continues "a body ...". `<ID>` in `text` is replaced by the id of the rule.
 * `fixedIds` lists the ids under which a server that accepts the body could store the plant.
 */
type FaultyBody = [
  error: ErrorName,
  fault: string,
  what: string,
  text: string,
  encoding?: BufferEncoding,
  fixedIds?: readonly bigint[],
];

/** Bodies that the shape NewPlant of the interface does not allow. */
export const FAULTY_BODIES: readonly FaultyBody[] = [
  ['notJson', 'empty', 'that is empty', ''],
  ['notJson', 'not-json', 'with incomplete JSON', '{"id":<ID>,"name":"A'],
  ['notJson', 'not-utf8', 'in ISO 8859-1 instead of UTF-8', '{"id":<ID>,"name":"Ip\u00ea"}', 'latin1'],
  ['notNewPlant', 'array', 'that is an array', `[${PLANT}]`],
  ['notNewPlant', 'id-missing', 'without id', '{"name":"A"}'],
  ['notNewPlant', 'id-null', 'with null as id', withId('null')],
  ['notNewPlant', 'id-string', 'with a string as id', withId('"<ID>"')],
  ['notNewPlant', 'id-fraction', 'with a fraction as id', withId('<ID>.5')],
  ['notNewPlant', 'id-above-int64', 'with the id 2^63, above int64,', withId(ID_MAX + 1n)],
  ['notNewPlant', 'id-below-int64', 'with the id -2^63 - 1, below int64,', withId(ID_MIN - 1n)],
  ['notNewPlant', 'name-missing', 'without name', '{"id":<ID>}'],
  ['notNewPlant', 'name-null', 'with null as name', '{"id":<ID>,"name":null}'],
  ['notNewPlant', 'name-number', 'with a number as name', '{"id":<ID>,"name":1}'],
  ['notNewPlant', 'tag-null', 'with null as tag', '{"id":<ID>,"name":"A","tag":null}'],
  ['notNewPlant', 'tag-number', 'with a number as tag', '{"id":<ID>,"name":"A","tag":1}'],
];

const UNPAIRED = String.raw`{"id":<ID>,"name":"A","tag":"\ud83c"}`;
const TINY_FRACTION = '.0000000000000000000001';
const FRACTION = '9007199254740993.5';
/** Integers to which a server may round the fraction. */
const NEARBY = [2n ** 53n + 1n, 2n ** 53n + 2n];

/** Faults that the interface does not mention. As doubles, the fractions here are integers. */
export const OWN_FAULTY_BODIES: readonly FaultyBody[] = [
  ['notJson', 'byte-order-mark', 'that begins with a byte order mark', `\ufeff${PLANT}`],
  ['notJson', 'utf16', 'in UTF-16', PLANT, 'utf16le'],
  ['notNewPlant', 'id-tiny-fraction', 'with an id 10^-22 above an integer', withId(`<ID>${TINY_FRACTION}`)],
  ['notNewPlant', 'id-underflow', 'with the id 1e-400', withId('1e-400'), 'utf8', [0n]],
  ['notNewPlant', 'id-fraction-above-double', 'with the id 2^53 + 1.5', withId(FRACTION), 'utf8', NEARBY],
  ['notNewPlant', 'id-repeated', 'with two id members', '{"id":<ID>,"id":<ID>,"name":"A"}'],
  ['notNewPlant', 'further-member-repeated', 'with a repeated unknown member', withId('<ID>,"x":1,"x":2')],
  ['notNewPlant', 'name-u0000', 'with U+0000 in the name', String.raw`{"id":<ID>,"name":"A\u0000B"}`],
  ['notNewPlant', 'tag-unpaired-surrogate', 'with an unpaired surrogate in the tag', UNPAIRED],
];
