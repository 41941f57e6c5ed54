// The screen Plants. The address contains the search, so that pages are links and the back button
// works. Ids are strings, because a JavaScript number would round them.
import { clientText, dayOf, exactTime, readForm, Table, time, totalText } from './display.js';
import { idLink, Newest, plantLink, Revised, tagLink, tokenLink } from './newest.js';
import { html, useEffect, useRef, useState } from './preact.js';
import { NoResponse, request, useAction, useLoad } from './requests.js';
import {
  beginningFirst,
  csvName,
  isMistypedId,
  NOTHING_FOUND,
  progressText,
  resultText,
  SHOWN_PLANTS_MAX,
  searchPlants,
  sentFilter,
} from './search.js';

const TOTAL_INTERVAL_MS = 2_000;
const DOWNLOAD_TIMEOUT_MS = 24 * 3_600_000;
/** Maximum of characters in a link, since browsers limit the length of an address. */
const CORRECTED_LENGTH_MAX = 50_000;
/** Windows in which all fields are shown. */
const WIDE = '(min-width: 48rem)';
/** What the search can be limited to, by the parameter `outcome`. */
const OUTCOMES = { '': 'new and changed', created: 'only new', revised: 'only changed' };
const DAMAGED = html`<strong>damaged</strong>`;

/** @typedef {import('./search.js').Plant} Plant */

/** @type {Record<string, (plant: Plant) => unknown>} */
const CONTENT_COLUMNS = {
  Name: ({ id, name, isDamaged }) => plantLink(id, isDamaged ? DAMAGED : clientText(name)),
  Tag: ({ tag, isDamaged }) => (isDamaged ? null : tagLink(tag)),
  Id: ({ id }) => idLink(id),
};

/** @type {Record<string, (plant: Plant) => unknown>} */
const SENDING_COLUMNS = {
  When: ({ recordedAt, isDamaged }) => (isDamaged ? null : time(recordedAt)),
  'By token': ({ recordedBy, isDamaged }) => (isDamaged ? null : tokenLink(recordedBy)),
};

const PLANT_COLUMNS = {
  ...CONTENT_COLUMNS,
  Revision: (/** @type {Plant} */ { revision }) => revision,
  ...SENDING_COLUMNS,
};

/** The columns of plants that were stored since a day. */
const STORED_COLUMNS = {
  ...CONTENT_COLUMNS,
  Outcome: (/** @type {Plant} */ { revision }) => (revision === 1 ? 'new' : 'changed'),
  ...SENDING_COLUMNS,
};

/** The key in `sessionStorage` of the query of the last search, for the link back from a plant. */
const LAST_QUERY_KEY = `plant_store_search ${location.pathname}`;

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
  sessionStorage.setItem(LAST_QUERY_KEY, query);
  const filter = new URLSearchParams(query);
  const again = () => setRound(round + 1);
  const search = (/** @type {SubmitEvent} */ event) => {
    const { id = '', ...texts } = readForm(event).texts;
    // Blanks are part of a name or a tag, but not of an id.
    const fields = Object.entries({ id: id.trim(), ...texts }).filter(([, text]) => text !== '');
    // Without a field, the search finds all plants. The screen itself shows the newest.
    const next = new URLSearchParams(fields).toString() || 'from=';
    if (next === query) again();
    location.hash = `plants?${next}`;
  };
  const revised = filter.get('revised');
  return html`
    <${StoreTotal} />
    <form role="search" onSubmit=${search}>
      <div class="fields">
        <${Field} name="name" label="Name contains" filter=${filter} />
        <button class="main">Search</button>
      </div>
      <${MoreFields} filter=${filter} />
    </form>
    ${
      query === ''
        ? html`<${Newest} />`
        : revised === null
          ? html`<${Results} key=${round} query=${query} onAgain=${again} />`
          : html`<${Revised} token=${revised} />`
    }`;
}

/** @param {{ name: string, label: string, filter: URLSearchParams, isDisabled?: boolean }} props */
function Field({ name, label, filter, isDisabled }) {
  return html`<div>
    <label for=${name}>${label}</label>
    <input id=${name} name=${name} defaultValue=${filter.get(name) ?? ''} disabled=${isDisabled} autocomplete="off" spellcheck=${false} />
  </div>`;
}

/** The fields that few searches need. A wide window has room for them. @param {{ filter: URLSearchParams }} props */
function MoreFields({ filter }) {
  const [isUntagged, setIsUntagged] = useState(filter.get('untagged') === '1');
  const [isOpen] = useState(
    ['tag', 'id', 'since', 'untagged', 'outcome'].some(name => filter.get(name)) || matchMedia(WIDE).matches,
  );
  const since = filter.get('since') ?? '';
  const outcome = filter.get('outcome') ?? '';
  // A link may have the time in ms.
  const day = /^[0-9]{6,}$/.test(since) ? dayOf(Number(since)) : since;
  return html`<details class="more" open=${isOpen}>
    <summary>More</summary>
    <div class="fields">
      <${Field} name="tag" label="Exact tag" filter=${filter} isDisabled=${isUntagged} />
      <div class="check"><label>
        <input type="checkbox" name="untagged" value="1" checked=${isUntagged} onChange=${() => setIsUntagged(!isUntagged)} /> without a tag
      </label></div>
      <${Field} name="id" label="Exact id" filter=${filter} />
      <div><label for="since">Stored since</label><input id="since" name="since" type="date" defaultValue=${day} /></div>
      <div>
        <label for="outcome">Which</label>
        <select id="outcome" name="outcome">
          ${Object.entries(OUTCOMES).map(([value, text]) => html`<option value=${value} selected=${value === outcome}>${text}</option>`)}
        </select>
      </div>
    </div>
  </details>`;
}

function StoreTotal() {
  const { content } = useLoad(() => request('plants/total'), TOTAL_INTERVAL_MS);
  const total = content?.total ?? null;
  return html`<p class="note">Plants in the store: <strong>${totalText(total)}</strong>${total && html`, counted ${time(total.at)}`}</p>`;
}

const NOTHING_MATCHES = html`<div class="empty">
  <p><strong>No plant matches.</strong></p>
  <p>
    Try a shorter part of the name: capital letters, accents and signs of hybrids do not matter there. A tag must be written exactly${' '}
    as it is stored; <a href="#tags">all tags</a>. Or <a href="#plants?from=">list all plants</a>.
  </p>
</div>`;

const MISTYPED_ID = html`<p class="verdict" data-state="not ready" role="alert">Write the number without commas or blanks.</p>`;

/** @param {{ query: string, onAgain: () => void }} props */
function Results({ query, onAgain }) {
  const filter = Object.fromEntries(new URLSearchParams(query));
  if (isMistypedId(filter.id)) return MISTYPED_ID;
  return html`<${Found} query=${query} filter=${filter} onAgain=${onAgain} />`;
}

/** @param {{ query: string, filter: Record<string, string>, onAgain: () => void }} props */
function Found({ query, filter, onAgain }) {
  const [found, setFound] = useState(NOTHING_FOUND);
  const isStopped = useRef(false);
  const end = (/** @type {'stopped' | 'failed'} */ phase) => {
    isStopped.current = true;
    setFound(last => (last.phase === 'complete' ? last : { ...last, phase }));
  };
  const { problem } = useLoad(() =>
    searchPlants(filter, next => {
      if (!isStopped.current) setFound(next);
      return !isStopped.current;
    }).catch(error => {
      if (!(error instanceof NoResponse)) throw error;
      end('failed');
    }),
  );
  useEffect(() => () => end('stopped'), []);
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
  const columns = filter.since ? STORED_COLUMNS : PLANT_COLUMNS;
  // One line, whose button changes, so that the table below it does not move.
  return html`${problem}
    <p class="links">
      <span role="status">${problem ? '' : resultText(found, filter.from)}</span>
      ${isReading && !problem && html`<span>${progressText(found)}</span><button type="button" onClick=${() => end('stopped')}>Stop</button>`}
      ${(phase === 'failed' || problem) && html`<button type="button" onClick=${onAgain}>Try again</button>`}
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
    ${plants.length > 0 && html`<div class="plants"><${Table} name="Found plants" columns=${columns} rows=${beginningFirst(plants, filter.name)} /></div>`}
    <p class="links">
      ${previousPage !== undefined && html`<a href=${`#plants?${previousPage}`}>Previous page</a>`}
      ${hasNext && html`<a href=${`#plants?${nextPage}`}>${plants.length < SHOWN_PLANTS_MAX ? 'Go on' : 'Next page'}</a>`}
    </p>`;
}

/** A link cannot send the header of the session. @param {Record<string, string>} filter */
async function download(filter) {
  const all = new URLSearchParams({ ...sentFilter(filter), from: '' });
  const href = URL.createObjectURL(await request(`plants.csv?${all}`, 'GET', undefined, DOWNLOAD_TIMEOUT_MS));
  const name = csvName(filter, dayOf(Date.now()));
  Object.assign(document.createElement('a'), { href, download: name }).click();
  // The address is revoked later, because some browsers read it late.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

/** @param {{ id: string }} props */
function Timeline({ id }) {
  const { content, problem } = useLoad(() => request(`revisions?${new URLSearchParams({ id })}`));
  /** @type {Plant[]} the latest first */
  const revisions = (content?.revisions ?? []).toReversed();
  const [latest] = revisions;
  const lastQuery = sessionStorage.getItem(LAST_QUERY_KEY) ?? '';
  const correction = latest && formLink(content.docs, id, latest, latest, 'Correct this plant');
  return html`
    <p><a href=${`#plants${lastQuery && `?${lastQuery}`}`}>${lastQuery ? 'Back to the search' : 'Search plants'}</a></p>
    ${problem}
    ${latest && html`<h2 class="plant">${latest.isDamaged ? DAMAGED : clientText(latest.name)}</h2>`}
    <p>
      ${latest && !latest.isDamaged && html`<span class="note">Tag</span> ${tagLink(latest.tag)} · `}<span class="note">Id</span> <span class="id">${id}</span>
    </p>
    ${correction && html`<p>${correction}</p>${CORRECTION_NOTE}`}
    ${revisions.map(
      (each, index) => html`<section class="entry">
        <h3>Revision ${each.revision}${index === 0 ? ' (latest)' : ''}</h3>
        ${!each.isDamaged && html`<p class="note">${time(each.recordedAt)}, ${exactTime(each.recordedAt)}, by token ${tokenLink(each.recordedBy)}</p>`}
        ${changesOf(each, revisions[index + 1])}
        ${latest && index > 0 && html`<p>${formLink(content.docs, id, each, latest, 'Use this content again')}</p>`}
      </section>`,
    )}
    ${(revisions.at(-1)?.revision ?? 1) > 1 && html`<p>Older revisions are not shown here. To print all: <code>npx plant-store show ${id} ${content.databaseFlag}</code></p>`}`;
}

const CORRECTION_NOTE = html`<p class="note">Nothing is lost: all earlier contents stay below.</p>`;

/**
 * A link to the form of the documentation page, which then shows only this plant. The fragment is
 * not sent. It opens in the same tab, which keeps the token of the form.
 *
 * @param {string | null} docs
 * @param {string} id
 * @param {Plant} content is filled in
 * @param {Plant} latest is replaced
 * @param {string} text
 */
function formLink(docs, id, { name, tag, isDamaged, revision }, latest, text) {
  const [console] = location.href.split('#', 1);
  const seen = { revision: latest.revision, name: latest.name, isEarlier: revision !== latest.revision };
  const plant = encodeURIComponent(JSON.stringify({ id, name, tag, seen, console }));
  if (docs === null || isDamaged || plant.length > CORRECTED_LENGTH_MAX) return null;
  return html`<a class="button" href=${`${docs}#plant=${plant}`}>${text}</a>`;
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
