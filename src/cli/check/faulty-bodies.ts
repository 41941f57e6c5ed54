import { ID_MAX, ID_MIN } from '../../contract/limits.ts';

/** A body that is no NewPlant for one reason alone. */
interface FaultyBody {
  /** Part of the ids of the rules made from it, so it never changes. */
  fault: string;
  /** What is wrong, as the end of a sentence. */
  what: string;
  body(id: bigint): string | Uint8Array;
}

const NOT_JSON_BODIES: readonly FaultyBody[] = [
  { fault: 'empty', what: 'that is empty', body: () => '' },
  { fault: 'not-json', what: 'that breaks off within the JSON', body: id => `{"id":${id},"name":"A` },
  {
    fault: 'not-utf8',
    what: 'in ISO 8859-1 instead of UTF-8',
    body: id => Buffer.from(`{"id":${id},"name":"Ip\u00ea"}`, 'latin1'),
  },
];

const MISSHAPEN_BODIES: readonly FaultyBody[] = [
  { fault: 'array', what: 'that is an array', body: id => `[{"id":${id},"name":"A"}]` },
  { fault: 'id-missing', what: 'without id', body: () => '{"name":"A"}' },
  { fault: 'id-null', what: 'with null as id', body: () => '{"id":null,"name":"A"}' },
  { fault: 'id-string', what: 'with a string as id', body: id => `{"id":"${id}","name":"A"}` },
  { fault: 'id-fraction', what: 'with a fraction as id', body: id => `{"id":${id}.5,"name":"A"}` },
  {
    fault: 'id-above-int64',
    what: 'with an id one above int64',
    body: () => `{"id":${ID_MAX + 1n},"name":"A"}`,
  },
  {
    fault: 'id-below-int64',
    what: 'with an id one below int64',
    body: () => `{"id":${ID_MIN - 1n},"name":"A"}`,
  },
  { fault: 'name-missing', what: 'without name', body: id => `{"id":${id}}` },
  { fault: 'name-null', what: 'with null as name', body: id => `{"id":${id},"name":null}` },
  { fault: 'name-number', what: 'with a number as name', body: id => `{"id":${id},"name":1}` },
  { fault: 'tag-null', what: 'with null as tag', body: id => `{"id":${id},"name":"A","tag":null}` },
  { fault: 'tag-number', what: 'with a number as tag', body: id => `{"id":${id},"name":"A","tag":1}` },
];

/** Bodies that the shape NewPlant of the interface does not allow. */
export const FAULTY_BODIES: readonly (FaultyBody & { error: 'notJson' | 'notNewPlant' })[] = [
  ...NOT_JSON_BODIES.map(each => ({ ...each, error: 'notJson' as const })),
  ...MISSHAPEN_BODIES.map(each => ({ ...each, error: 'notNewPlant' as const })),
];
