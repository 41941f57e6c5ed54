// The screen Plants. The search is in the address, so that pages are links and Back works.
import { Problem, Table, Text, Time } from './display.js';
import { html } from './preact.js';
import { useLoad } from './requests.js';

/**
 * @typedef {{ id: string, revision: number, name: string, tag?: string, recordedAt: number,
 *   recordedBy: string }} Plant
 * @param {{ id: string | undefined, query: string }} props
 */
export function Plants({ id, query }) {
  return id === undefined ? html`<${Search} query=${query} />` : html`<${Timeline} id=${id} key=${id} />`;
}

/**
 * A JavaScript number would round the id.
 *
 * @param {string} text
 * @returns {string | undefined} the id as the store writes it; undefined if it is not an int64
 */
function exactId(text) {
  if (!/^-?[0-9]{1,30}$/.test(text)) return undefined;
  const id = BigInt(text);
  return BigInt.asIntN(64, id) === id ? String(id) : undefined;
}

/** @param {{ query: string }} props */
function Search({ query }) {
  const filter = new URLSearchParams(query);
  const { content, error, repeat } = useLoad(`plants?${query}`);
  const search = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    const fields = [...new FormData(form)].map(([name, value]) => [name, String(value)]);
    const typed = fields.filter(([, value]) => value !== '');
    const next = new URLSearchParams(
      typed.map(([name = '', value = '']) => [name, name === 'id' ? (exactId(value.trim()) ?? '') : value]),
    ).toString();
    if (next === query) repeat();
    else location.hash = next === '' ? 'plants' : `plants?${next}`;
  };
  const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {object} */ more) =>
    html`<div><label for=${name}>${label}</label><input id=${name} name=${name} defaultValue=${filter.get(name) ?? ''} autocomplete="off" spellcheck=${false} ...${more} /></div>`;
  return html`
    <form key=${query} class="fields" role="search" onSubmit=${search}>
      ${field('id', 'Exact id', { inputmode: 'numeric', onInput: checkId })}
      ${field('name', 'Name begins with', {})}
      ${field('tag', 'Exact tag', {})}
      <button class="main">Search</button>
    </form>
    <${Problem} what="Not searched" error=${error} />
    ${content === undefined ? html`<p role="status">${error === undefined ? 'Searching …' : ''}</p>` : html`<${Results} filter=${filter} content=${content} />`}`;
}

/** @param {Event} event */
function checkId({ currentTarget }) {
  const input = /** @type {HTMLInputElement} */ (currentTarget);
  const typed = input.value.trim();
  const isValid = typed === '' || exactId(typed) !== undefined;
  input.setCustomValidity(isValid ? '' : `Enter an integer from ${-(2n ** 63n)} to ${2n ** 63n - 1n}.`);
}

/**
 * @param {{ filter: URLSearchParams,
 *   content: { plants: Plant[], next: string | null, read: number, isCutShort?: boolean } }} props
 */
function Results({ filter, content: { plants, next, read, isCutShort } }) {
  const pageFrom = (/** @type {string} */ from) =>
    `#plants?${new URLSearchParams({ ...Object.fromEntries(filter), from })}`;
  const csv = new URLSearchParams([...filter].filter(([name]) => name === 'name' || name === 'tag'));
  const where = filter.has('from') ? ` from id ${filter.get('from')} on` : '';
  const found = `${plants.length === 1 ? '1 plant' : `${plants.length} plants`}${where}`;
  const rest = isCutShort
    ? `The time limit ended this search after ${read.toLocaleString()} revisions. There may be more plants.`
    : next === null
      ? 'These are all.'
      : 'There are more.';
  return html`
    <p role="status">${plants.length === 0 && next === null ? `No plant${where} matches.` : `${found}. ${rest}`}</p>
    ${plants.length === 0 ? null : html`<${Table} caption="Plants, by id" columns=${['Id', 'Name', 'Tag', 'Revision', 'Recorded', 'By token']} rows=${plants.map(plantRow)} />`}
    <p class="links">
      ${next === null ? null : html`<a href=${pageFrom(next)}>${isCutShort ? 'Search on' : 'Next page'}</a>`}
      ${filter.has('from') ? html`<button type="button" onClick=${() => history.back()}>Back</button>` : null}
      ${filter.has('id') ? null : html`<a href=${`api/plants.csv?${csv}`} download="plants.csv">${csv.size === 0 ? 'Download all plants as CSV' : 'Download all that match as CSV'}</a>`}
    </p>`;
}

/** @param {Plant} plant */
function plantRow({ id, revision, name, tag, recordedAt, recordedBy }) {
  return {
    key: id,
    cells: [
      html`<a class="id" href=${`#plants/${id}`}>${id}</a>`,
      html`<${Text} text=${name} />`,
      tag === undefined ? html`<span class="note">no tag</span>` : html`<${Text} text=${tag} />`,
      revision,
      html`<${Time} at=${recordedAt} />`,
      html`<${Text} text=${recordedBy} />`,
    ],
  };
}

/** @param {{ id: string }} props */
function Timeline({ id }) {
  const { content, error } = useLoad(`plants/${encodeURIComponent(id)}`);
  /** @type {Plant[]} */
  const revisions = content?.revisions ?? [];
  return html`
    <p class="links"><a href="#plants">Search plants</a></p>
    <h2>Plant <span class="id">${id}</span></h2>
    ${error?.status === 404 ? html`<p role="status">The store has no plant with this id.</p>` : html`<${Problem} what="Not loaded" error=${error} />`}
    <ol class="timeline">${revisions.map(
      (each, index) => html`<li key=${each.revision}>
        <h3>Revision ${each.revision}${index === revisions.length - 1 ? ' (latest)' : ''}</h3>
        <p class="note"><${Time} at=${each.recordedAt} /> by token <${Text} text=${each.recordedBy} /></p>
        ${changes(revisions[index - 1], each)}
      </li>`,
    )}</ol>`;
}

/**
 * @param {Plant | undefined} before undefined for the first revision
 * @param {Plant} after
 */
function changes(before, after) {
  const text = (/** @type {string} */ value) => html`<${Text} text=${value} />`;
  if (before === undefined) {
    const tag = after.tag === undefined ? html`, without a tag` : html`, tag ${text(after.tag)}`;
    return html`<p>Created: name ${text(after.name)}${tag}</p>`;
  }
  const changed = (/** @type {string} */ what, /** @type {string} */ from, /** @type {string} */ to) =>
    html`<p>${what} changed from <del>${text(from)}</del> to <ins>${text(to)}</ins></p>`;
  return html`
    ${before.name === after.name ? null : changed('Name', before.name, after.name)}
    ${before.tag === after.tag ? null : before.tag === undefined ? html`<p>Tag added: <ins>${text(after.tag ?? '')}</ins></p>` : after.tag === undefined ? html`<p>Tag removed: <del>${text(before.tag)}</del></p>` : changed('Tag', before.tag, after.tag)}`;
}
