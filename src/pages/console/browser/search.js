// A search of plants: it fills a page, and then counts the other plants that match.
import { COUNT, folded } from './display.js';
import { request } from './requests.js';

/** Plants of a page, as in `plant-requests.ts` of the service. */
export const SHOWN_PLANTS_MAX = 50;
/** A page ends early at this many characters of names and tags: a name may have a million. */
const PAGE_TEXT_LENGTH_MAX = 1_000_000;

/** Characters of a filter in the name of a file. */
const NAME_LENGTH_MAX = 80;

/**
 * A plant. If it is damaged, only its id and its revision are known.
 *
 * @typedef {{ id: string, revision: number, name: string, tag?: string, recordedAt: number,
 *   recordedBy: string, isDamaged?: true }} Plant
 */

/**
 * What a search has found so far.
 *
 * - `before`: plants of the pages before this one.
 * - `next`: the id at which the next page begins, of which `searched` revisions come before.
 * - `matching`: plants of this page, before it, and counted after it.
 * - `read`: revisions that were read, of about `total`.
 *
 * @typedef {{ phase: 'searching' | 'counting' | 'complete' | 'stopped' | 'failed', plants: Plant[],
 *   before: number, matching: number, next: string | null, searched: number, read: number,
 *   total: number | null }} Found
 */

/** @type {Found} */
export const NOTHING_FOUND = {
  phase: 'searching',
  plants: [],
  before: 0,
  matching: 0,
  next: null,
  searched: 0,
  read: 0,
  total: null,
};

/**
 * The filter of the address as the service reads it: a day begins at midnight in the zone of the
 * browser.
 *
 * @param {Record<string, string>} filter
 */
export function sentFilter({ since, ...filter }) {
  if (!since) return filter;
  const midnight = Date.parse(`${since}T00:00`);
  return { ...filter, since: Number.isNaN(midnight) ? since : `${midnight}` };
}

/** Whether an id has other characters than digits, such as the commas of a spreadsheet. @param {string} [id] */
export function isMistypedId(id = '') {
  return id !== '' && !/^-?[0-9]+$/.test(id);
}

/**
 * The plants of a page, first those whose name begins with the searched text.
 *
 * @param {Plant[]} plants
 * @param {string} [text]
 */
export function beginningFirst(plants, text = '') {
  const begin = folded(text);
  const isFirst = (/** @type {Plant} */ { name = '' }) => Number(folded(name).startsWith(begin));
  return plants.toSorted((one, two) => isFirst(two) - isFirst(one));
}

/**
 * The name of a downloaded file, such as `plants-acer-2026-05-01.csv`.
 *
 * @param {Record<string, string>} filter
 * @param {string} day
 */
export function csvName({ name = '', tag = '', id = '', untagged, since, outcome = '' }, day) {
  const parts = [name, tag, id, untagged ? 'without a tag' : '', outcome, since ? `since ${since}` : ''];
  const words = parts
    .join(' ')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu) ?? ['all'];
  return `plants-${words.join('-').slice(0, NAME_LENGTH_MAX)}-${day}.csv`;
}

/**
 * Sends requests until this page is full, and then until the other plants are counted. The service
 * ends each response after some time.
 *
 * @param {Record<string, string>} filter
 * @param {(found: Found) => boolean} onFound gets all that was found so far; returns whether the
 *   search goes on
 */
export async function searchPlants(filter, onFound) {
  const { revisions: total } = filter.id ? { revisions: null } : await request('revisions/count');
  const before = Number(filter.before ?? 0);
  const searched = Number(filter.searched ?? 0);
  /** @type {Found} */
  let found = {
    ...NOTHING_FOUND,
    before,
    matching: before,
    next: filter.from ?? null,
    searched,
    read: searched,
    total,
  };
  for (let from = found.next; onFound(found) && found.phase !== 'complete'; ) {
    const isPage = found.phase === 'searching';
    const query = new URLSearchParams({ ...sentFilter(filter), from: from ?? '' });
    const part = await request(`${isPage ? 'plants' : 'plants/count'}?${query}`);
    from = part.next;
    found = isPage ? withPage(found, part) : withCount(found, part);
  }
}

/**
 * @param {Found} found
 * @param {{ plants: Plant[], next: string | null, searched: number }} page
 * @returns {Found}
 */
function withPage(found, page) {
  const plants = [...found.plants, ...page.plants];
  const textLength = plants.reduce((sum, { name = '', tag = '' }) => sum + name.length + tag.length, 0);
  const isFull = plants.length >= SHOWN_PLANTS_MAX || textLength >= PAGE_TEXT_LENGTH_MAX;
  const searched = found.searched + page.searched;
  return {
    ...found,
    phase: page.next === null ? 'complete' : isFull ? 'counting' : 'searching',
    plants,
    matching: found.before + plants.length,
    next: page.next,
    searched,
    read: searched,
  };
}

/**
 * @param {Found} found
 * @param {{ plants: number, next: string | null, searched: number }} count
 * @returns {Found}
 */
function withCount(found, count) {
  return {
    ...found,
    phase: count.next === null ? 'complete' : 'counting',
    matching: found.matching + count.plants,
    read: found.read + count.searched,
  };
}

/**
 * The read share of the store. Plants arrive meanwhile, so only a complete search shows 100 %.
 *
 * @param {number} read
 * @param {number | null} total
 */
export function readText(read, total) {
  if (total === null) return `${COUNT.format(read)} revisions read`;
  return `${Math.min(99, Math.floor((read / total) * 100))} % read`;
}

/** @param {Found} found */
export function progressText({ matching, read, total }) {
  return `${COUNT.format(matching)} found, ${readText(read, total)}.`;
}

/**
 * The state of a search in words.
 *
 * @param {Found} found
 * @param {string} [from] where it began
 */
export function resultText(found, from) {
  const { phase, before, matching } = found;
  if (phase === 'searching') return 'Searching …';
  if (phase === 'counting') return 'Counting all that match …';
  if (phase === 'failed') return 'Not possible now, because the service does not respond.';
  if (phase === 'stopped') return `Stopped. So far: ${progressText(found)}`;
  const count = matching === 0 ? 'No plant' : matching === 1 ? '1 plant' : `${COUNT.format(matching)} plants`;
  const begin = from && before === 0 ? ` from id ${from} on` : '';
  return `${count} found${begin}${pageText(found)}. The search is complete.`;
}

/** Which part of all found plants a page has. @param {Found} found */
function pageText({ before, matching, plants, next }) {
  if (plants.length === matching) return '';
  const isFull = plants.length === SHOWN_PLANTS_MAX || next === null;
  // Pages of very long names have fewer plants.
  if (before % SHOWN_PLANTS_MAX !== 0 || !isFull)
    return ` (this page has ${before + 1} to ${before + plants.length})`;
  return ` (page ${before / SHOWN_PLANTS_MAX + 1} of ${Math.ceil(matching / SHOWN_PLANTS_MAX)})`;
}
