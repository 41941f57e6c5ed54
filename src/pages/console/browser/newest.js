// The plants that this instance stored last, which the screen Plants shows before a search.
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
  Tag: ({ tag }) => clientText(tag),
  Id: ({ id }) => idLink(id),
  Outcome: ({ outcome }) => outcome,
  When: ({ at }) => time(at),
  'By token': ({ label }) => clientText(label),
};

/** @param {string} id */
export function idLink(id) {
  return html`<a class="id" href=${`#plants/${id}`}>${id}</a>`;
}

/** @param {string} id @param {unknown} text */
export function plantLink(id, text) {
  return html`<a class="name" href=${`#plants/${id}`}>${text}</a>`;
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
      <button type="button" onClick=${repeat}>Refresh</button>
    </div>
    ${problem}
    ${content && plants.length === 0 && html`<${NoPlants} docs=${content.docs} />`}
    ${plants.length > 0 && html`<${Table} name="Newest plants" columns=${COLUMNS} rows=${plants.slice(0, shown)} />`}
    ${more > 0 && html`<p class="links"><button type="button" onClick=${() => setShown(shown + STEP)}>Show ${more} more</button></p>`}`;
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
