// The plants that this instance stored or revised last, which the screen Plants shows without a
// search.
import { clientText, Table, time } from './display.js';
import { html, useState } from './preact.js';
import { request, useLoad } from './requests.js';

/** Plants that are shown at first, and with each click on the button. */
const STEP = 20;

/**
 * @typedef {{ at: number, id: string, name: string, tag?: string, outcome: string, label: string }}
 *   NewestPlant
 * @type {Record<string, (plant: NewestPlant) => unknown>}
 */
const COLUMNS = {
  Name: ({ id, name }) => plantLink(id, clientText(name)),
  Tag: ({ tag }) => tagLink(tag),
  Id: ({ id }) => idLink(id),
  Outcome: ({ outcome }) => outcome,
  When: ({ at }) => time(at),
  'By token': ({ label }) => clientText(label),
};

/**
 * A content is null if the plant has many later revisions.
 *
 * @typedef {{ name?: string, tag?: string, isDamaged?: true }} Content
 * @typedef {{ at: number, id: string, label: string, before: Content | null, after: Content | null }}
 *   RevisedPlant
 * @type {Record<string, (plant: RevisedPlant) => unknown>}
 */
const REVISED_COLUMNS = {
  Name: ({ id, before, after }) => plantLink(id, changeOf(before, after, 'name')),
  Tag: ({ before, after }) => changeOf(before, after, 'tag'),
  Id: ({ id }) => idLink(id),
  When: ({ at }) => time(at),
  'By token': ({ label }) =>
    html`<a href=${`#plants?${new URLSearchParams({ revised: label })}`}>${clientText(label)}</a>`,
};

/** @param {string} id */
export function idLink(id) {
  return html`<a class="id" href=${`#plants/${id}`}>${id}</a>`;
}

/** @param {string} id @param {unknown} text */
export function plantLink(id, text) {
  return html`<a class="name" href=${`#plants/${id}`}>${text}</a>`;
}

/** A link to the plants with a tag. An empty tag cannot be searched. @param {string | undefined} tag */
export function tagLink(tag) {
  if (!tag) return clientText(tag);
  return html`<a class="tag" href=${`#plants?${new URLSearchParams({ tag })}`}>${clientText(tag)}</a>`;
}

/**
 * What became of a name or a tag: the old text and the new one, or only one if they are equal.
 *
 * @param {Content | null} before
 * @param {Content | null} after
 * @param {'name' | 'tag'} field
 */
function changeOf(before, after, field) {
  if (after === null) return html`<em class="note">revised again, see its page</em>`;
  if (after.isDamaged || before?.isDamaged) return html`<strong>damaged</strong>`;
  const now = clientText(after[field]);
  if (before === null || before[field] === after[field]) return now;
  return html`<del>${clientText(before[field])}</del><ins>${now}</ins>`;
}

/** The list changes only on request, so that no row moves. */
export function Newest() {
  const { content, problem, repeat } = useLoad(() => request('newest'));
  const [shown, setShown] = useState(STEP);
  /** @type {NewestPlant[]} */
  const plants = content?.plants ?? [];
  const more = Math.min(STEP, plants.length - shown);
  return html`
    <div class="title">
      <h2>Newest</h2>
      <span class="note">${plants.length > 0 && `the last ${plants.length} that this instance confirmed since its start`}</span>
      <a href="#plants?revised=">Only revised plants</a>
      <button type="button" onClick=${repeat}>Refresh</button>
    </div>
    ${problem}
    ${content && plants.length === 0 && html`<${NoPlants} docs=${content.docs} />`}
    ${plants.length > 0 && html`<${Table} name="Newest plants" columns=${COLUMNS} rows=${plants.slice(0, shown)} />`}
    ${more > 0 && html`<p class="links"><button type="button" onClick=${() => setShown(shown + STEP)}>Show ${more} more</button></p>`}`;
}

/**
 * The plants that were revised last, with what changed, so that wrong revisions are noticed.
 *
 * @param {{ token: string }} props only those of this token; empty: of all
 */
export function Revised({ token }) {
  const { content, problem, repeat } = useLoad(() => request(`revised?${new URLSearchParams({ token })}`));
  /** @type {RevisedPlant[]} */
  const plants = content?.plants ?? [];
  const sender = token && html` by token ${clientText(token)}`;
  return html`
    <div class="title">
      <h2>Revised</h2>
      <span class="note">the last ${STEP}${sender} that this instance confirmed since its start, with what changed</span>
      ${token && html`<a href="#plants?revised=">Of all tokens</a>`}
      <a href="#plants">All newest plants</a>
      <button type="button" onClick=${repeat}>Refresh</button>
    </div>
    ${problem}
    ${
      content &&
      plants.length === 0 &&
      html`<div class="empty">
        <p><strong>No plant was revised${sender}.</strong></p>
        <p>A plant is revised when its id is sent again with another name or tag. Each earlier content stays on the page of the plant.</p>
      </div>`
    }
    ${plants.length > 0 && html`<${Table} name="Revised plants" columns=${REVISED_COLUMNS} rows=${plants} />`}`;
}

/** @param {{ docs: string | null }} props the address of the documentation page */
function NoPlants({ docs }) {
  return html`<div class="empty">
    <p><strong>Since its start, this instance has stored no plant.</strong></p>
    <ul>
      <li><a href="#plants?from=">List the plants of the store</a>, which earlier starts or other instances stored.</li>
      <li>${docs ? html`<a href=${docs}>Send a plant with the form</a> of the documentation` : html`Send a plant with <code>npx plant-store add</code>`}; it needs a <a href="#tokens">token</a>.</li>
      <li>Send a whole list with <code>npx plant-store import FILE</code>.</li>
    </ul>
  </div>`;
}
