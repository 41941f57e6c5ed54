// The screen Plants. The search is in the address, so that pages are links and Back works. Ids are
// strings: a JavaScript number would round them.
import { Problem, Table, Text, Time } from './display.js';
import { html } from './preact.js';
import { useLoad } from './requests.js';

/**
 * @typedef {{ id: string, revision: number, name: string, tag?: string, recordedAt: number,
 *   recordedBy: string }} Plant
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
  ['name', 'Name begins with'],
  ['tag', 'Exact tag'],
];

/** @param {{ query: string }} props */
function Search({ query }) {
  const filter = new URLSearchParams(query);
  const { content, error, repeat } = useLoad(`plants?${query}`);
  const search = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    const next = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      // Blanks count, except around an id.
      const text = name === 'id' ? String(value).trim() : String(value);
      if (text !== '') next.set(name, text);
    }
    if (next.toString() === query) repeat();
    else location.hash = `plants?${next}`;
  };
  return html`
    <form class="fields" role="search" aria-describedby="search-note" onSubmit=${search}>
      ${FIELDS.map(([name, label]) => html`<div key=${name}><label for=${name}>${label}</label><input id=${name} name=${name} defaultValue=${filter.get(name) ?? ''} autocomplete="off" spellcheck=${false} /></div>`)}
      <button class="main">Search</button>
    </form>
    <p id="search-note" class="note">An empty field does not limit the search, so plants without a tag cannot be searched for. Capital and small letters differ.</p>
    <${Problem} what="Not searched" error=${error} />
    <p role="status">${content !== undefined ? resultText(content) : error === undefined ? 'Searching …' : ''}</p>
    ${content === undefined ? null : html`<${Results} filter=${filter} content=${content} />`}`;
}

/**
 * The service ends a page when it is full or has taken too long, so `next` does not mean that there
 * are more plants.
 *
 * @typedef {{ plants: Plant[], next: string | null }} Found
 * @param {Found} found
 */
function resultText({ plants: { length }, next }) {
  if (length === 0 && next === null) return 'No plant found.';
  const count = `${length === 1 ? '1 plant' : `${length} plants`} on this page.`;
  return next === null ? `${count} There are no more.` : `${count} There may be more from id ${next} on.`;
}

/** @param {{ filter: URLSearchParams, content: Found }} props */
function Results({ filter, content: { plants, next } }) {
  const nextPage = new URLSearchParams({ ...Object.fromEntries(filter), from: next ?? '' });
  const csv = new URLSearchParams(filter);
  csv.delete('from');
  return html`
    ${plants.length === 0 ? null : html`<${Table} caption="Plants, by id" columns=${['Id', 'Name', 'Tag', 'Revision', 'Recorded', 'By token']} rows=${plants.map(plantRow)} />`}
    <p class="links">
      ${next === null ? null : html`<a href=${`#plants?${nextPage}`}>Next page</a>`}
      <a href=${`api/plants.csv?${csv}`} download="plants.csv">Download all that match as CSV</a>
    </p>`;
}

/** @param {Plant} plant */
function plantRow({ id, revision, name, tag, recordedAt, recordedBy }) {
  return {
    key: id,
    cells: [
      html`<a class="id" href=${`#plants/${id}`}>${id}</a>`,
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
  const { content, error } = useLoad(`revisions?${new URLSearchParams({ id })}`);
  /** @type {Plant[]} */
  const revisions = content?.revisions ?? [];
  return html`
    <p><a href="#plants">Search plants</a></p>
    <h2>Plant <span class="id">${id}</span></h2>
    <${Problem} what="Not shown" error=${error} />
    ${(revisions[0]?.revision ?? 1) > 1 ? html`<p>Older revisions are not shown here. To print all: <code>npx plant-store show ${id}</code></p>` : null}
    <ol class="timeline">${revisions.map(
      (each, index) => html`<li key=${each.revision}>
        <h3>Revision ${each.revision}${index === revisions.length - 1 ? ' (latest)' : ''}</h3>
        <p class="note"><${Time} at=${each.recordedAt} /> by token <${Text} text=${each.recordedBy} /></p>
        <${Changes} before=${revisions[index - 1]} after=${each} />
      </li>`,
    )}</ol>`;
}

/** @param {{ before: Plant | undefined, after: Plant }} props nothing before the first one shown */
function Changes({ before, after }) {
  const { name, tag, revision } = after;
  if (before === undefined)
    return html`<p>${revision === 1 ? 'Created with name' : 'Name'}: <${Text} text=${name} />, tag: <${Text} text=${tag} /></p>`;
  const fields = [
    { what: 'Name', from: before.name, to: name },
    { what: 'Tag', from: before.tag, to: tag },
  ];
  return fields
    .filter(({ from, to }) => from !== to)
    .map(
      ({ what, from, to }) =>
        html`<p key=${what}>${what} changed from <del><${Text} text=${from} /></del> to <ins><${Text} text=${to} /></ins></p>`,
    );
}
