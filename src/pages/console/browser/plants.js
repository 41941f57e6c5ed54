// The screen Plants. The address contains the search, so that pages are links and the back button
// works. Ids are strings, because a JavaScript number would round them.
import { clientText, exactTime, readForm, Table, time, totalText } from './display.js';
import { idLink, Newest, plantLink, Revised, tagLink } from './newest.js';
import { html, useEffect, useRef, useState } from './preact.js';
import { request, useAction, useLoad } from './requests.js';
import { NOTHING_FOUND, progressText, resultText, SHOWN_PLANTS_MAX, searchPlants } from './search.js';

const TOTAL_INTERVAL_MS = 2_000;
const DOWNLOAD_TIMEOUT_MS = 24 * 3_600_000;
/** Maximum of characters in a link, since browsers limit the length of an address. */
const CORRECTED_LENGTH_MAX = 50_000;
const FIELDS = { name: 'Name contains', tag: 'Exact tag', id: 'Exact id' };
const DAMAGED = html`<strong>damaged</strong>`;

/** @typedef {import('./search.js').Plant} Plant */

/** @type {Record<string, (plant: Plant) => unknown>} */
const PLANT_COLUMNS = {
  Name: ({ id, name, isDamaged }) => plantLink(id, isDamaged ? DAMAGED : clientText(name)),
  Tag: ({ tag, isDamaged }) => (isDamaged ? null : tagLink(tag)),
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
  const revised = filter.get('revised');
  return html`
    <${StoreTotal} />
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
      In names, case, accents and signs of hybrids do not matter; in tags, they do.
    </p>
    ${
      query === ''
        ? html`<${Newest} />`
        : revised === null
          ? html`<${Results} key=${round} query=${query} />`
          : html`<${Revised} token=${revised} />`
    }`;
}

function StoreTotal() {
  const { content } = useLoad(() => request('plants/total'), TOTAL_INTERVAL_MS);
  const total = content?.total ?? null;
  return html`<p class="note">Plants in the store: <strong>${totalText(total)}</strong>${total && html`, counted ${time(total.at)}`}</p>`;
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
    searchPlants(filter, next => {
      if (!isStopped.current) setFound(next);
      return !isStopped.current;
    }),
  );
  const stop = () => {
    isStopped.current = true;
    setFound(last => (last.phase === 'complete' ? last : { ...last, phase: 'stopped' }));
  };
  useEffect(() => stop, []);
  const { problem: failure, isRunning, run } = useAction();
  const { phase, plants, before, next, searched } = found;
  const isReading = phase === 'searching' || phase === 'counting';
  const hasNext = next !== null && phase !== 'searching';
  const nextPage = new URLSearchParams({
    ...filter,
    from: next ?? '',
    searched: `${searched}`,
    before: `${before + plants.length}`,
  });
  if (hasNext) previousPages.set(`${nextPage}`, query);
  const previousPage = previousPages.get(query);
  // One line, whose button changes, so that the table below it does not move.
  return html`${problem}
    <p class="links">
      <span role="status">${problem ? '' : resultText(found, filter.from)}</span>
      ${isReading && !problem && html`<span>${progressText(found)}</span><button type="button" onClick=${stop}>Stop</button>`}
      ${
        !isReading &&
        plants.length > 0 &&
        html`<button type="button" disabled=${isRunning} onClick=${() => run(() => download(filter))}>
          ${isRunning ? 'Downloading …' : 'Download all that match as CSV'}
        </button>`
      }
    </p>
    ${failure}
    ${phase === 'complete' && plants.length === 0 && !problem && NOTHING_MATCHES}
    ${plants.length > 0 && html`<${Table} name="Plants, by id" numbers=${['Revision']} columns=${PLANT_COLUMNS} rows=${plants} />`}
    <p class="links">
      ${previousPage !== undefined && html`<a href=${`#plants?${previousPage}`}>Previous page</a>`}
      ${hasNext && html`<a href=${`#plants?${nextPage}`}>${plants.length < SHOWN_PLANTS_MAX ? 'Go on' : 'Next page'}</a>`}
    </p>`;
}

/** A link cannot send the header of the session. @param {Record<string, string>} filter */
async function download(filter) {
  const all = new URLSearchParams({ ...filter, from: '' });
  const href = URL.createObjectURL(await request(`plants.csv?${all}`, 'GET', undefined, DOWNLOAD_TIMEOUT_MS));
  Object.assign(document.createElement('a'), { href, download: 'plants.csv' }).click();
  // The address is revoked later, because some browsers read it late.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
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
    ${problem}
    ${latest && html`<h2 class="plant">${latest.isDamaged ? DAMAGED : clientText(latest.name)}</h2>`}
    <p>
      ${latest && !latest.isDamaged && html`<span class="note">Tag</span> ${tagLink(latest.tag)} · `}<span class="note">Id</span> <span class="id">${id}</span>
    </p>
    ${correction && html`<p>${correction} ${FORM_NOTE}</p>`}
    ${revisions.map(
      (each, index) => html`<section class="entry">
        <h3>Revision ${each.revision}${index === 0 ? ' (latest)' : ''}</h3>
        ${!each.isDamaged && html`<p class="note">${time(each.recordedAt)}, ${exactTime(each.recordedAt)}, by token ${clientText(each.recordedBy)}</p>`}
        ${changesOf(each, revisions[index + 1])}
        ${index > 0 && html`<p>${formLink(content.docs, { ...each, id }, 'Use this content again')}</p>`}
      </section>`,
    )}
    ${(revisions.at(-1)?.revision ?? 1) > 1 && html`<p>Older revisions are not shown here. To print all: <code>npx plant-store show ${id} ${content.databaseFlag}</code></p>`}`;
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
