// The screen Plants. The address contains the search, so that pages are links and the back button
// works. Ids are strings, because a JavaScript number would round them.
import { clientText, exactTime, readForm, Table, time } from './display.js';
import { idLink, Newest, plantLink } from './newest.js';
import { html, useEffect, useRef, useState } from './preact.js';
import { request, useAction, useLoad } from './requests.js';

/** Plants of a page, as in operator-console.ts of the service. */
const SHOWN_PLANTS_MAX = 50;
/** A page ends early at this many characters of names and tags: a name may have a million. */
const PAGE_TEXT_LENGTH_MAX = 1_000_000;
const DOWNLOAD_TIMEOUT_MS = 24 * 3_600_000;
/** Maximum of characters in a link, since browsers limit the length of an address. */
const CORRECTED_LENGTH_MAX = 50_000;
const FIELDS = { name: 'Name contains', tag: 'Exact tag', id: 'Exact id' };
const COUNT = new Intl.NumberFormat();
const DAMAGED = html`<strong>damaged</strong>`;

/**
 * A plant. If it is damaged, only its id and its revision are known.
 *
 * @typedef {{ id: string, revision: number, name: string, tag?: string, recordedAt: number,
 *   recordedBy: string, isDamaged?: true }} Plant
 */

/**
 * What a search has found so far. `searched` of `total` revisions were read. `next` is the id at
 * which the search goes on. The service also ends a page after some time, so there may be no more
 * plants.
 *
 * @typedef {{ plants: Plant[], next: string | null, isSearching: boolean, searched: number,
 *   total: number | null }} Found
 */

/** @type {Record<string, (plant: Plant) => unknown>} */
const PLANT_COLUMNS = {
  Name: ({ id, name, isDamaged }) => plantLink(id, isDamaged ? DAMAGED : clientText(name)),
  Tag: ({ tag, isDamaged }) => (isDamaged ? null : clientText(tag)),
  Id: ({ id }) => idLink(id),
  Revision: ({ revision }) => revision,
  Recorded: ({ recordedAt, isDamaged }) => (isDamaged ? null : time(recordedAt)),
  'By token': ({ recordedBy, isDamaged }) => (isDamaged ? null : clientText(recordedBy)),
};

/** The query of the last search, for the link back. */
let lastQuery = '';

/** The query of the previous page, by the query of a page. @type {Map<string, string>} */
const previousPages = new Map();

/** @param {{ id: string | undefined, query: string }} props */
export function Plants({ id, query }) {
  if (id) return html`<${Timeline} key=${id} id=${id} />`;
  return html`<${Search} key=${`?${query}`} query=${query} />`;
}

/** @param {{ query: string }} props */
function Search({ query }) {
  const [round, setRound] = useState(0);
  lastQuery = query;
  const filter = new URLSearchParams(query);
  const search = (/** @type {SubmitEvent} */ event) => {
    const { id = '', ...texts } = readForm(event).texts;
    // Blanks are part of a name or a tag, but not of an id.
    const fields = Object.entries({ id: id.trim(), ...texts }).filter(([, text]) => text !== '');
    // Without a field, the search finds all plants. The screen itself shows the newest.
    const next = new URLSearchParams(fields).toString() || 'from=';
    if (next === query) setRound(round + 1);
    location.hash = `plants?${next}`;
  };
  return html`
    <form class="fields" role="search" aria-describedby="search-note" onSubmit=${search}>
      ${Object.entries(FIELDS).map(
        ([name, label]) => html`<div>
          <label for=${name}>${label}</label>
          <input id=${name} name=${name} defaultValue=${filter.get(name) ?? ''} autocomplete="off" spellcheck=${false} />
        </div>`,
      )}
      <button class="main">Search</button>
    </form>
    <p id="search-note" class="note">
      An empty field does not limit the search, so plants without a tag cannot be searched for.${' '}
      In names, case and accents do not matter; in tags, they do.
    </p>
    ${query === '' ? html`<${Newest} />` : html`<${Results} key=${round} query=${query} />`}`;
}

/** @type {Found} */
const NOTHING_FOUND = { plants: [], next: null, isSearching: true, searched: 0, total: null };

/**
 * Requests pages of the service until this page is full.
 *
 * @param {Record<string, string>} filter
 * @param {(found: Found) => boolean} onFound gets all that was found so far; returns whether the
 *   search goes on
 */
async function search(filter, onFound) {
  const { revisions: total } = filter.id ? { revisions: null } : await request('plants/count');
  let found = { ...NOTHING_FOUND, next: filter.from ?? null, searched: Number(filter.searched ?? 0), total };
  while (onFound(found) && found.isSearching) {
    const page = await request(`plants?${new URLSearchParams({ ...filter, from: found.next ?? '' })}`);
    const plants = [...found.plants, ...page.plants];
    const textLength = plants.reduce((sum, { name = '', tag = '' }) => sum + name.length + tag.length, 0);
    const isFull = plants.length >= SHOWN_PLANTS_MAX || textLength >= PAGE_TEXT_LENGTH_MAX;
    const isSearching = page.next !== null && !isFull;
    found = { plants, next: page.next, isSearching, searched: found.searched + page.searched, total };
  }
}

const NOTHING_MATCHES = html`<div class="empty">
  <p><strong>No plant matches.</strong></p>
  <p>
    Try a shorter part of the name. A tag must be written exactly as it is stored, with its case and its accents.${' '}
    <a href="#plants?from=">List all plants</a>
  </p>
</div>`;

/** @param {{ query: string }} props */
function Results({ query }) {
  const filter = Object.fromEntries(new URLSearchParams(query));
  const [found, setFound] = useState(NOTHING_FOUND);
  const isStopped = useRef(false);
  const { problem } = useLoad(() =>
    search(filter, next => {
      if (!isStopped.current) setFound(next);
      return !isStopped.current;
    }),
  );
  const stop = () => {
    isStopped.current = true;
    setFound(last => ({ ...last, isSearching: false }));
  };
  useEffect(() => stop, []);
  const { problem: failure, isRunning, run } = useAction();
  const { plants, next, isSearching, searched } = found;
  const hasNext = next !== null && !isSearching;
  const nextPage = new URLSearchParams({ ...filter, from: next ?? '', searched: `${searched}` });
  if (hasNext) previousPages.set(`${nextPage}`, query);
  const previousPage = previousPages.get(query);
  return html`${problem}
    <div class="links progress">
      <span role="status" class="note">${problem ? '' : isSearching ? 'Searching …' : resultText(found, filter.from)}</span>
      ${isSearching && !problem && html`<span class="note">${progressText(found)}</span><button type="button" onClick=${stop}>Stop</button>`}
    </div>
    ${plants.length === 0 && next === null && !isSearching && !problem && NOTHING_MATCHES}
    ${plants.length > 0 && html`<${Table} name="Plants, by id" numbers=${['Revision']} columns=${PLANT_COLUMNS} rows=${plants} />`}
    <p class="links">
      ${previousPage !== undefined && html`<a href=${`#plants?${previousPage}`}>Previous page</a>`}
      ${hasNext && html`<a href=${`#plants?${nextPage}`}>${plants.length < SHOWN_PLANTS_MAX ? 'Go on' : 'Next page'}</a>`}
      ${
        plants.length > 0 &&
        html`<button type="button" disabled=${isRunning} onClick=${() => run(() => download(filter))}>
          ${isRunning ? 'Downloading …' : 'Download all that match as CSV'}
        </button>`
      }
    </p>
    ${failure}`;
}

/** A link cannot send the header of the session. @param {Record<string, string>} filter */
async function download(filter) {
  const all = new URLSearchParams({ ...filter, from: '' });
  const href = URL.createObjectURL(await request(`plants.csv?${all}`, 'GET', undefined, DOWNLOAD_TIMEOUT_MS));
  Object.assign(document.createElement('a'), { href, download: 'plants.csv' }).click();
  // The address is revoked later, because some browsers read it late.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

/**
 * The searched share. Plants arrive during a search, so only a complete search shows 100 %.
 *
 * @param {Found} found
 */
function progressText({ plants: { length }, searched, total }) {
  if (total === null) return `${length} found, ${COUNT.format(searched)} revisions read.`;
  return `${length} found, ${Math.min(99, Math.floor((searched / total) * 100))} % read.`;
}

/**
 * @param {Found} found
 * @param {string} [from]
 */
function resultText(found, from) {
  const { length } = found.plants;
  const count = length === 0 ? 'No plant' : length === 1 ? '1 plant' : `${length} plants`;
  const begin = from ? ` from id ${from} on` : '';
  return found.next === null
    ? `${count} found${begin}. The search is complete.`
    : `${count} on this page${begin}. So far: ${progressText(found)}`;
}

/** @param {{ id: string }} props */
function Timeline({ id }) {
  const { content, problem } = useLoad(() => request(`revisions?${new URLSearchParams({ id })}`));
  /** @type {Plant[]} the latest first */
  const revisions = (content?.revisions ?? []).toReversed();
  const [latest] = revisions;
  const correction = latest && formLink(content.docs, { ...latest, id }, 'Correct this plant');
  return html`
    <p><a href=${`#plants${lastQuery && `?${lastQuery}`}`}>${lastQuery ? 'Back to the search' : 'Search plants'}</a></p>
    <h2>Plant <span class="id">${id}</span></h2>
    ${problem}
    ${latest && html`<p class="latest">${latest.isDamaged ? DAMAGED : clientText(latest.name)}</p>`}
    ${latest && !latest.isDamaged && html`<p>Tag: ${clientText(latest.tag)}</p>`}
    ${correction && html`<p>${correction} ${FORM_NOTE}</p>`}
    ${revisions.map(
      (each, index) => html`<section class="entry">
        <h3>Revision ${each.revision}${index === 0 ? ' (latest)' : ''}</h3>
        ${!each.isDamaged && html`<p class="note">${time(each.recordedAt)}, ${exactTime(each.recordedAt)}, by token ${clientText(each.recordedBy)}</p>`}
        ${changesOf(each, revisions[index + 1])}
        ${index > 0 && html`<p>${formLink(content.docs, { ...each, id }, 'Use this content again')}</p>`}
      </section>`,
    )}
    ${(revisions.at(-1)?.revision ?? 1) > 1 && html`<p>Older revisions are not shown here. To print all: <code>npx plant-store show ${id}</code></p>`}`;
}

const FORM_NOTE = html`<span class="note">opens the form of the documentation; sending it needs a token, and stores a new revision</span>`;

/**
 * A link to the documentation page with the plant in its form. The fragment is not sent. It opens
 * in the same tab, which keeps the token of the form.
 *
 * @param {string | null} docs
 * @param {Plant} plant
 * @param {string} text
 */
function formLink(docs, { id, name, tag, isDamaged }, text) {
  const plant = encodeURIComponent(JSON.stringify({ id, name, tag }));
  if (docs === null || isDamaged || plant.length > CORRECTED_LENGTH_MAX) return null;
  return html`<a href=${`${docs}#plant=${plant}`}>${text}</a>`;
}

/** @param {Plant} plant */
function contentOf({ name, tag, isDamaged }) {
  return isDamaged ? DAMAGED : html`Name: ${clientText(name)}, tag: ${clientText(tag)}`;
}

/**
 * @param {Plant} after
 * @param {Plant} [before] undefined: `after` is the first that is shown
 */
function changesOf(after, before) {
  if (before === undefined || before.isDamaged || after.isDamaged) return html`<p>${contentOf(after)}</p>`;
  const change = (/** @type {string} */ what, /** @type {'name' | 'tag'} */ field) =>
    before[field] !== after[field] &&
    html`<p>${what} changed from <del>${clientText(before[field])}</del> to <ins>${clientText(after[field])}</ins></p>`;
  return [change('Name', 'name'), change('Tag', 'tag')];
}
