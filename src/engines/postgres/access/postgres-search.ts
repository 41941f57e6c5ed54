import { foldedParts, HYBRID_SIGN, MARKS, PLAIN_LETTERS, SIGN_AND_LETTER } from '../../search/folded-text.ts';
import { nameCondition } from '../../search/name-condition.ts';
import {
  type AddValue,
  countPlants,
  countTags,
  type PlantSearch,
  revisionsOf,
  searchPage,
} from '../../search/plant-search.ts';
import type { Query } from '../../tables/table-access.ts';
import type { Connection } from '../connection.ts';
import { ConnectionPool } from '../connections/connection-pool.ts';
import { HostSearch } from '../connections/host-search.ts';
import type { PostgresAddress } from '../postgres-url.ts';
import type { StoreConnection } from '../topology/topology.ts';
import { bytes } from './postgres-reader.ts';

/** Two, so that one search does not wait for another. */
const CONNECTIONS = 2;
/** From several servers, a smaller slice takes as long. A larger one may take a disk read for each row. */
const SLICE_ROWS = { min: 2_048, max: 8_192 };

/** Searches a store on connections of its own, which are opened on use. They can only read. */
export function openPostgresSearch(address: PostgresAddress): PlantSearch {
  const pool = new ConnectionPool(new HostSearch(address, prepareSearch), CONNECTIONS);
  const query: Query = (text, values) => pool.use(connection => connection.run({ text, values }));
  const store = { query, sliceRows: SLICE_ROWS, nameContains };
  return {
    page: (...args) => searchPage(store, ...args),
    count: (...args) => countPlants(store, ...args),
    countTags: (...args) => countTags(store, ...args),
    revisionsOf: (...args) => revisionsOf(query, ...args),
    bytes: () => pool.use(bytes),
    revisions: () => pool.use(estimatedRevisions),
    [Symbol.asyncDispose]: () => pool.close(),
  };
}

/**
 * SQL of the folded name, with capital letters beyond ASCII as they are: the locale of the database
 * would decide which of them it knows.
 */
const FOLDED = `lower(${PLAIN_LETTERS.reduce(
  (text, [letter, plain]) => `replace(${text}, '${letter}', '${plain}')`,
  `regexp_replace(normalize(name, NFD), '${MARKS}', '', 'g')`,
)} COLLATE "C")`;

const [SIGN, LETTER] = SIGN_AND_LETTER;
/** The letters of ASCII in lower case. The collation C is faster than others. */
const LOWER = 'lower(name COLLATE "C")';
/** SQL: whether a name may have a sign of a hybrid. */
const HAS_SIGN = String.raw`lower(normalize(name, NFD) COLLATE "C") ~ '${SIGN}|[ \u00a0]${MARKS}*${LETTER}${MARKS}*[ \u00a0]'`;

function nameContains(part: string, add: AddValue): string {
  const texts = foldedParts(part);
  const parts = texts.map(add);
  const isIn = (folding: string) =>
    `(${parts.map(each => `strpos(replace(${folding}, '${SIGN}', '${LETTER}'), ${each}) > 0`).join(' OR ')})`;
  const withSigns = withSmallLetters(FOLDED, texts.join(''), add);
  const withoutSigns = `regexp_replace(${withSigns}, '${HYBRID_SIGN}', '', 'g')`;
  // Few names have a sign, so the second folding is rarely made.
  const isMatch = `(${isIn(withSigns)} OR ${HAS_SIGN} AND ${isIn(withoutSigns)})`;
  return nameCondition(part, add, {
    contains: parameter => `strpos(${LOWER}, ${parameter}) > 0`,
    isMatch,
  });
}

/** Returns SQL that replaces the capitals of the searched letters. No others can make a name match. */
function withSmallLetters(folding: string, searched: string, add: AddValue): string {
  const small = [...new Set(searched)].flatMap(letter =>
    (capitals().get(letter) ?? []).map(capital => ({ capital, letter })),
  );
  if (small.length === 0) return folding;
  const from = add(small.map(({ capital }) => capital).join(''));
  const to = add(small.map(({ letter }) => letter).join(''));
  return `translate(${folding}, ${from}, ${to})`;
}

let cachedCapitals: Map<string, string[]> | undefined;

/** The capitals beyond ASCII of each letter. */
function capitals(): Map<string, string[]> {
  cachedCapitals ??= Map.groupBy(capitalsBeyondAscii(), capital => capital.toLowerCase());
  return cachedCapitals;
}

function* capitalsBeyondAscii(): Iterable<string> {
  // No plane beyond the first two has letters with a case.
  for (let code = 0x80; code < 0x2_0000; code++) {
    const letter = String.fromCodePoint(code);
    if (letter.toLowerCase() !== letter) yield letter;
  }
}

/** The estimate of the last ANALYZE or VACUUM. A server without the rows has none. */
async function estimatedRevisions(connection: Connection): Promise<number | undefined> {
  const text = `SELECT reltuples::bigint FROM pg_class WHERE oid = 'plant_revision'::regclass`;
  const [row] = await connection.run({ text });
  return Number(row![0]) > 0 ? Number(row![0]) : undefined;
}

async function prepareSearch(connection: StoreConnection): Promise<void> {
  await connection.topology.prepare(connection, 'read');
  // The parallel workers of a statement would take several cores from the creates.
  await connection.run({
    text: 'SET default_transaction_read_only = on; SET max_parallel_workers_per_gather = 0',
  });
}
