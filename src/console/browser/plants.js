// The screen Plants. The address contains the search, so that pages are links and Back works. Ids
// are strings, because a JavaScript number would round them.
import { Problem, readForm, Table, Text, Time } from './display.js';
import { html, useEffect, useRef, useState } from './preact.js';
import { request, useAction, useLoad } from './requests.js';

/**
 * @typedef {{ id: string, revision: number, name: string, tag?: string, recordedAt: number,
 *   recordedBy: string, isDamaged?: true }} Plant a damaged one has only a number
 * @param {{ id: string | undefined, query: string }} props
 */
export function Plants({ id, query }) {
  return id
    ? html`<${Timeline} key=${id} id=${id} />`
    : html`<${Search} key=${`?${query}`} query=${query} />`;
}

/** @type {[name: string, label: string][]} */
const FIELDS = [
  ['id', 'Exact id'],
  ['name', 'Name contains'],
  ['tag', 'Exact tag'],
];

/** Plants of a page, as in operator-console.ts of the service. */
const PAGE_PLANTS = 50;
/** Characters. A name may have a million. */
const PAGE_TEXT_LENGTH = 1_000_000;
const DOWNLOAD_TIMEOUT_MS = 24 * 3_600_000;

/**
 * What was found so far. The service ends a page when it is full or has taken too long, so `next`
 * does not mean that there are more plants.
 *
 * @typedef {{ plants: Plant[], next: string | null, isSearching: boolean, searched: number,
 *   total: number | null }} Found `searched` revisions of `total`, from the first page on
 */

/** The query of the last search, to go back to it. */
let lastQuery = '';

/** By the query of a page: that of the page before it. @type {Map<string, string>} */
const previousPages = new Map();

/**
 * Requests pages of the service until this page is full.
 *
 * @param {string} query
 */
function useSearch(query) {
  const [found, setFound] = useState(/** @type {Found | undefined} */ (undefined));
  // The filter of the search that runs. A search ends when this changes.
  const running = useRef(/** @type {URLSearchParams | undefined} */ (undefined));
  const stop = () => {
    running.current = undefined;
    setFound(last => last && { ...last, isSearching: false });
  };
  useEffect(() => stop, []);
  const { error, repeat } = useLoad(async () => {
    if (query === '') return;
    const filter = new URLSearchParams(query);
    running.current = filter;
    setFound(undefined);
    let textLength = 0;
    const { revisions: total } = filter.get('id') ? { revisions: null } : await request('plants/count');
    /** @type {Found} */
    let result = {
      plants: [],
      next: null,
      isSearching: true,
      searched: Number(filter.get('searched')),
      total,
    };
    while (result.isSearching && running.current === filter) {
      const { plants, next, searched } = await request(`plants?${filter}`);
      const all = [...result.plants, ...plants];
      for (const { name = '', tag = '' } of plants) textLength += name.length + tag.length;
      const isFull = all.length >= PAGE_PLANTS || textLength >= PAGE_TEXT_LENGTH;
      result = { ...result, plants: all, next, isSearching: next !== null && !isFull };
      result.searched += searched;
      filter.set('from', next);
      if (running.current === filter) setFound(result);
    }
  });
  return { found, error, repeat, stop };
}

/** @param {{ query: string }} props */
function Search({ query }) {
  const filter = new URLSearchParams(query);
  const searching = useSearch(query);
  const { repeat } = searching;
  lastQuery = query;
  const search = (/** @type {SubmitEvent} */ event) => {
    const { texts } = readForm(event);
    const next = new URLSearchParams();
    for (const [name, text] of Object.entries(texts)) {
      // Blanks are part of a name or a tag, but not of an id.
      const value = name === 'id' ? text.trim() : text;
      if (value !== '') next.set(name, value);
    }
    // Without a field, the search finds all plants. The screen itself shows the newest.
    const text = `${next}` || 'from=';
    if (text === query) repeat();
    else location.hash = `plants?${text}`;
  };
  return html`
    <form class="fields" role="search" aria-describedby="search-note" onSubmit=${search}>
      ${FIELDS.map(([name, label]) => html`<div key=${name}><label for=${name}>${label}</label><input id=${name} name=${name} defaultValue=${filter.get(name) ?? ''} autocomplete="off" spellcheck=${false} /></div>`)}
      <button class="main">Search</button>
    </form>
    <p id="search-note" class="note">An empty field does not limit the search, so plants without a tag cannot be searched for. In names, case and accents do not matter; in tags, they do.</p>
    ${query === '' ? html`<${Newest} />` : html`<${SearchResults} query=${query} state=${searching} />`}`;
}

/** @param {{ query: string, state: ReturnType<typeof useSearch> }} props */
function SearchResults({ query, state: { found, error, stop } }) {
  const filter = new URLSearchParams(query);
  return html`
    <${Problem} what="Not searched" error=${error} />
    <p role="status">${found && !found.isSearching ? resultText(found, filter.get('from')) : error === undefined ? 'Searching …' : ''}</p>
    ${found?.isSearching ? html`<p class="links"><span>${progressText(found)}</span><button type="button" onClick=${stop}>Stop</button></p>` : null}
    ${found && html`<${Results} filter=${filter} found=${found} />`}`;
}

/** The plants that this instance stored last. It changes only on request, so that no row moves. */
function Newest() {
  const { content, error, repeat } = useLoad(() => request('newest'));
  /** @type {{ at: number, id: string, outcome: string, label: string }[] | undefined} */
  const plants = content?.plants;
  return html`
    <h2>Newest</h2>
    <${Problem} what="Not loaded" error=${error} />
    ${plants && html`<p class="links"><span>${plants.length === 0 ? 'Since its start, this instance has stored no plant.' : `The last ${plants.length} that this instance confirmed since its start.`}</span><button type="button" onClick=${repeat}>Refresh</button></p>`}
    ${plants?.length ? html`<${Table} caption="Newest plants" columns=${['Id', 'Outcome', 'When', 'By token']} rows=${plants.map(newestRow)} />` : null}`;
}

/**
 * @param {{ at: number, id: string, outcome: string, label: string }} plant
 * @param {number} index
 */
function newestRow({ at, id, outcome, label }, index) {
  const cells = [idLink(id), outcome, html`<${Time} at=${at} />`, html`<${Text} text=${label} />`];
  return { key: String(index), cells };
}

const COUNT = new Intl.NumberFormat();

/**
 * Counted or estimated: plants arrive during a search, so 100 % is only the end.
 *
 * @param {Found} found
 */
function progressText({ plants: { length }, searched, total }) {
  const share =
    total === null ? COUNT.format(searched) : `${Math.min(99, Math.floor((searched / total) * 100))} %`;
  return `${length} found, ${share} read${total === null ? ' revisions' : ''}.`;
}

/**
 * @param {Found} found
 * @param {string | null} from
 */
function resultText(found, from) {
  const { length } = found.plants;
  const count = length === 0 ? 'No plant' : length === 1 ? '1 plant' : `${length} plants`;
  const begin = from ? ` from id ${from} on` : '';
  return found.next === null
    ? `${count} found${begin}. The search is complete.`
    : `${count} on this page${begin}. So far: ${progressText(found)}`;
}

/** @param {{ filter: URLSearchParams, found: Found }} props */
function Results({ filter, found: { plants, next, isSearching, searched } }) {
  const previousPage = previousPages.get(`${filter}`);
  const nextPage = new URLSearchParams({
    ...Object.fromEntries(filter),
    ...{ from: next ?? '', searched: `${searched}` },
  });
  if (next !== null && !isSearching) previousPages.set(`${nextPage}`, `${filter}`);
  const csv = new URLSearchParams(filter);
  csv.delete('from');
  const { error, isRunning, run } = useAction();
  // A link cannot send the header of the session.
  const download = async () => {
    const file = await request(`plants.csv?${csv}`, 'GET', undefined, DOWNLOAD_TIMEOUT_MS);
    const href = URL.createObjectURL(file);
    Object.assign(document.createElement('a'), { href, download: 'plants.csv' }).click();
    // Not at once: some browsers read it later.
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  };
  return html`
    ${plants.length === 0 ? null : html`<${Table} caption="Plants, by id" columns=${['Id', 'Name', 'Tag', 'Revision', 'Recorded', 'By token']} rows=${plants.map(plantRow)} />`}
    <p class="links">
      ${previousPage === undefined ? null : html`<a href=${`#plants?${previousPage}`}>Previous page</a>`}
      ${next === null || isSearching ? null : html`<a href=${`#plants?${nextPage}`}>${plants.length < PAGE_PLANTS ? 'Go on' : 'Next page'}</a>`}
      ${plants.length === 0 ? null : html`<button type="button" disabled=${isRunning} onClick=${() => run(download)}>${isRunning ? 'Downloading …' : 'Download all that match as CSV'}</button>`}
    </p>
    <${Problem} what="Not downloaded" error=${error} />`;
}

const DAMAGED = html`<strong>damaged</strong>`;

/** @param {string} id */
function idLink(id) {
  return html`<a class="id" href=${`#plants/${id}`}>${id}</a>`;
}

/** @param {Plant} plant */
function plantRow({ id, revision, name, tag, recordedAt, recordedBy, isDamaged }) {
  if (isDamaged) return { key: id, cells: [idLink(id), DAMAGED, '', revision, '', ''] };
  return {
    key: id,
    cells: [
      idLink(id),
      html`<${Text} text=${name} />`,
      html`<${Text} text=${tag} />`,
      revision,
      html`<${Time} at=${recordedAt} />`,
      html`<${Text} text=${recordedBy} />`,
    ],
  };
}

/** @param {{ id: string }} props */
function Timeline({ id }) {
  const { content, error } = useLoad(() => request(`revisions?${new URLSearchParams({ id })}`));
  /** @type {Plant[]} the latest first */
  const revisions = (content?.revisions ?? []).toReversed();
  return html`
    <p><a href=${`#plants${lastQuery && `?${lastQuery}`}`}>${lastQuery ? 'Back to the search' : 'Search plants'}</a></p>
    <h2>Plant <span class="id">${id}</span></h2>
    <${Problem} what="Not shown" error=${error} />
    ${revisions[0] && html`<p><${Content} ...${revisions[0]} /></p><${Correct} docs=${content.docs} id=${id} plant=${revisions[0]} />`}
    <ol class="timeline">${revisions.map(
      (each, index) => html`<li key=${each.revision}>
        <h3>Revision ${each.revision}${index === 0 ? ' (latest)' : ''}</h3>
        ${each.isDamaged ? null : html`<p class="note"><${Time} at=${each.recordedAt} /> by token <${Text} text=${each.recordedBy} /></p>`}
        <${Changes} before=${revisions[index + 1]} after=${each} />
      </li>`,
    )}</ol>
    ${(revisions.at(-1)?.revision ?? 1) > 1 ? html`<p>Older revisions are not shown here. To print all: <code>npx plant-store show ${id}</code></p>` : null}`;
}

/** Characters. Browsers limit the length of an address. */
const CORRECTED_LENGTH_MAX = 50_000;

/**
 * A link to the documentation page with the plant in its form. The fragment is not sent.
 *
 * @param {{ docs: string | null, id: string, plant: Plant }} props
 */
function Correct({ docs, id, plant: { name, tag, isDamaged } }) {
  const plant = encodeURIComponent(JSON.stringify({ id, name, tag }));
  if (docs === null || isDamaged || plant.length > CORRECTED_LENGTH_MAX) return null;
  return html`<p><a href=${`${docs}#plant=${plant}`} target="_blank" rel="noreferrer">Correct this plant</a> <span class="note">opens the form of the documentation; sending it needs a token</span></p>`;
}

/** @param {Plant} plant */
function Content({ name, tag, isDamaged }) {
  if (isDamaged) return DAMAGED;
  return html`Name: <${Text} text=${name} />, tag: <${Text} text=${tag} />`;
}

/** @param {{ before: Plant | undefined, after: Plant }} props without `before`: the first shown */
function Changes({ before, after }) {
  if (before === undefined || before.isDamaged || after.isDamaged)
    return html`<p><${Content} ...${after} /></p>`;
  const fields = [
    { what: 'Name', from: before.name, to: after.name },
    { what: 'Tag', from: before.tag, to: after.tag },
  ];
  return fields
    .filter(({ from, to }) => from !== to)
    .map(
      ({ what, from, to }) =>
        html`<p key=${what}>${what} changed from <del><${Text} text=${from} /></del> to <ins><${Text} text=${to} /></ins></p>`,
    );
}
