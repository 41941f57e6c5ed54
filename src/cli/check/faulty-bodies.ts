import type { ErrorName } from '../../contract/errors.ts';
import { ID_MAX, ID_MIN } from '../../contract/limits.ts';

/**
 * A body that is no NewPlant for one reason alone. The fault is part of the ids of the rules made from it, so it never
 * changes; what is wrong is the end of a sentence. A server that takes the body might store the plant under an id that is
 * written in it: those are the fixed ids.
 */
type FaultyBody = [
  error: ErrorName,
  fault: string,
  what: string,
  body: (id: bigint) => string | Uint8Array,
  fixedIds?: readonly bigint[],
];

/** Bodies that the shape NewPlant of the interface does not allow. */
export const FAULTY_BODIES: readonly FaultyBody[] = [
  ['notJson', 'empty', 'that is empty', () => ''],
  ['notJson', 'not-json', 'that breaks off within the JSON', id => `{"id":${id},"name":"A`],
  [
    'notJson',
    'not-utf8',
    'in ISO 8859-1 instead of UTF-8',
    id => Buffer.from(`{"id":${id},"name":"Ip\u00ea"}`, 'latin1'),
  ],
  ['notNewPlant', 'array', 'that is an array', id => `[{"id":${id},"name":"A"}]`],
  ['notNewPlant', 'id-missing', 'without id', () => '{"name":"A"}'],
  ['notNewPlant', 'id-null', 'with null as id', () => '{"id":null,"name":"A"}'],
  ['notNewPlant', 'id-string', 'with a string as id', id => `{"id":"${id}","name":"A"}`],
  ['notNewPlant', 'id-fraction', 'with a fraction as id', id => `{"id":${id}.5,"name":"A"}`],
  ['notNewPlant', 'id-above-int64', 'with an id one above int64', () => `{"id":${ID_MAX + 1n},"name":"A"}`],
  ['notNewPlant', 'id-below-int64', 'with an id one below int64', () => `{"id":${ID_MIN - 1n},"name":"A"}`],
  ['notNewPlant', 'name-missing', 'without name', id => `{"id":${id}}`],
  ['notNewPlant', 'name-null', 'with null as name', id => `{"id":${id},"name":null}`],
  ['notNewPlant', 'name-number', 'with a number as name', id => `{"id":${id},"name":1}`],
  ['notNewPlant', 'tag-null', 'with null as tag', id => `{"id":${id},"name":"A","tag":null}`],
  ['notNewPlant', 'tag-number', 'with a number as tag', id => `{"id":${id},"name":"A","tag":1}`],
];

/** Faults that the interface leaves open, or that its shapes do not name. */
export const OWN_FAULTY_BODIES: readonly FaultyBody[] = [
  ['notJson', 'byte-order-mark', 'that begins with a byte order mark', id => `\ufeff{"id":${id},"name":"A"}`],
  ['notJson', 'utf16', 'in UTF-16', id => Buffer.from(`{"id":${id},"name":"A"}`, 'utf16le')],
  [
    'notNewPlant',
    'id-tiny-fraction',
    'with an id that is 10^-22 above an integer, for which a double takes it,',
    id => `{"id":${id}.0000000000000000000001,"name":"A"}`,
  ],
  [
    'notNewPlant',
    'id-underflow',
    'with 1e-400 as id, which a double takes for 0,',
    () => '{"id":1e-400,"name":"A"}',
    [0n],
  ],
  [
    'notNewPlant',
    'id-fraction-above-double',
    'with 9007199254740993.5 as id, which a double takes for an integer,',
    () => '{"id":9007199254740993.5,"name":"A"}',
    [2n ** 53n + 1n, 2n ** 53n + 2n],
  ],
  ['notNewPlant', 'id-repeated', 'that gives the id twice', id => `{"id":${id},"id":${id},"name":"A"}`],
  [
    'notNewPlant',
    'further-member-repeated',
    'that gives a further member twice',
    id => `{"id":${id},"name":"A","height":1,"height":2}`,
  ],
  ['notNewPlant', 'name-u0000', 'with U+0000 in the name', id => String.raw`{"id":${id},"name":"A\u0000B"}`],
  [
    'notNewPlant',
    'tag-unpaired-surrogate',
    'with an unpaired surrogate in the tag',
    id => String.raw`{"id":${id},"name":"A","tag":"\ud83c"}`,
  ],
];
