// The plants that this instance stored or revised last, which the screen Plants shows without a
// search.
import { COUNT, clientText, dayOf, startText, Table, time } from './display.js';
import { html, useState } from './preact.js';
import { request, useLoad } from './requests.js';

/** Plants that are shown at first, and with each click on the button. */
const STEP = 20;
/** Plants of an outcome that the service has in memory, as in `activity.ts` of the service. */
const KIND_MAX = 200;

/**
 * Outcomes by the words of the page.
 *
 * @type {Record<string, string>}
 */
const OUTCOMES = { new: 'created', changed: 'revised', same: 'unchanged' };

/** What the list shows, also after other screens. Plants that were sent again are of little interest. */
const shownKinds = new Set(['new', 'changed']);

/**
 * @typedef {{ at: number, id: string, name: string, tag?: string, outcome: string, label: string }}
 *   NewestPlant
 * @type {Record<string, (plant: NewestPlant) => unknown>}
 */
const COLUMNS = {
  Name: ({ id, name }) => plantLink(id, clientText(name)),
  Tag: ({ tag }) => tagLink(tag),
  Id: ({ id }) => idLink(id),
  Outcome: ({ outcome }) => kindOf(outcome),
  When: ({ at }) => time(at),
  'By token': ({ label }) => tokenLink(label),
};

/**
 * A content is null if the plant has many later revisions.
 *
 * @typedef {{ name?: string, tag?: string, isDamaged?: true }} Content
 * @typedef {{ at: number, id: string, revision: number, label: string, before: Content | null, after: Content | null }}
 *   RevisedPlant
 * @type {Record<string, (plant: RevisedPlant) => unknown>}
 */
const REVISED_COLUMNS = {
  Name: ({ id, before, after }) => plantLink(id, changeOf(before, after, 'name')),
  Tag: ({ before, after }) => changeOf(before, after, 'tag'),
  Id: ({ id }) => idLink(id),
  Revision: ({ revision }) => revision,
  When: ({ at }) => time(at),
  'By token': ({ label }) => tokenLink(label),
};

/** @param {string} outcome */
function kindOf(outcome) {
  return Object.keys(OUTCOMES).find(kind => OUTCOMES[kind] === outcome) ?? outcome;
}

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

/** A link to the plants that a token changed. @param {string} label */
export function tokenLink(label) {
  return html`<a class="token" href=${`#plants?${new URLSearchParams({ revised: label })}`}>${clientText(label)}</a>`;
}

/** The address of the plants that were stored today. */
function todayQuery() {
  return `#plants?${new URLSearchParams({ since: dayOf(Date.now()) })}`;
}

/**
 * What became of a name or a tag: the old text and the new one, or only one if they are equal.
 *
 * @param {Content | null} before
 * @param {Content | null} after
 * @param {'name' | 'tag'} field
 */
function changeOf(before, after, field) {
  if (after === null) return html`<em class="note">changed again, see its page</em>`;
  if (after.isDamaged || before?.isDamaged) return html`<strong>damaged</strong>`;
  const now = field === 'tag' ? tagLink(after.tag) : clientText(after.name);
  if (before === null || before[field] === after[field]) return now;
  return html`<del>${clientText(before[field])}</del><ins>${now}</ins>`;
}

/** The list changes only on request, so that no row moves. */
export function Newest() {
  const { content, problem, repeat } = useLoad(() => request('newest'));
  const [kinds, setKinds] = useState(shownKinds);
  const [shown, setShown] = useState(STEP);
  /** @type {NewestPlant[]} */
  const plants = content?.plants ?? [];
  const wanted = plants.filter(({ outcome }) => kinds.has(kindOf(outcome)));
  const more = Math.min(STEP, wanted.length - shown);
  const toggle = (/** @type {string} */ kind) => {
    if (!shownKinds.delete(kind)) shownKinds.add(kind);
    setKinds(new Set(shownKinds));
    setShown(STEP);
  };
  const count = (/** @type {string} */ kind) =>
    plants.filter(({ outcome }) => outcome === OUTCOMES[kind]).length;
  return html`
    <div class="title">
      <h2>Newest</h2>
      <span class="note">${content && `the last ${KIND_MAX} of each kind ${startText(content.startedAt)}`}</span>
      <span class="links"><a href=${todayQuery()}>Today</a><a href="#plants?revised=">What was changed</a></span>
      <button type="button" onClick=${repeat}>Refresh</button>
    </div>
    ${problem}
    <fieldset class="kinds">
      <legend class="note">Show</legend>
      ${Object.keys(OUTCOMES).map(
        kind => html`<label>
          <input type="checkbox" checked=${kinds.has(kind)} onChange=${() => toggle(kind)} />
          ${kind} <span class="note">${content && COUNT.format(count(kind))}</span>
        </label>`,
      )}
    </fieldset>
    ${content && plants.length === 0 && html`<${NoPlants} docs=${content.docs} />`}
    ${plants.length > 0 && wanted.length === 0 && html`<p>None of these. The boxes above show the other plants.</p>`}
    ${wanted.length > 0 && html`<div class="plants"><${Table} name="Newest plants" columns=${COLUMNS} rows=${wanted.slice(0, shown)} /></div>`}
    ${more > 0 && html`<p class="links"><button type="button" onClick=${() => setShown(shown + STEP)}>Show ${more} more</button></p>`}`;
}

/**
 * The plants that were revised last, with what changed, so that wrong revisions are noticed.
 *
 * @param {{ token: string }} props only those of this token; empty: of all
 */
export function Revised({ token }) {
  const [shown, setShown] = useState(STEP);
  const { content, problem, repeat } = useLoad(() =>
    request(`revised?${new URLSearchParams({ token, count: `${shown}` })}`),
  );
  /** @type {RevisedPlant[]} */
  const plants = content?.plants ?? [];
  const more = content ? Math.min(STEP, content.total - plants.length) : 0;
  const sender = token && html` by token ${clientText(token)}`;
  const showMore = () => {
    setShown(plants.length + STEP);
    repeat();
  };
  return html`
    <div class="title">
      <h2>Changed</h2>
      <span class="note">${content && html`the last ${KIND_MAX}${sender} ${startText(content.startedAt)}, with the old content struck out`}</span>
      <span class="links">
        <a href=${todayQuery()}>Today</a>
        ${token && html`<a href="#plants?revised=">By all tokens</a>`}
        <a href="#plants">Newest</a>
      </span>
      <button type="button" onClick=${repeat}>Refresh</button>
    </div>
    ${problem}
    ${
      content &&
      plants.length === 0 &&
      html`<div class="empty">
        <p><strong>No plant was changed${sender}.</strong></p>
        <p>A plant changes when its id is sent again with another name or tag. Each earlier content stays on the page of the plant.</p>
      </div>`
    }
    ${plants.length > 0 && html`<div class="plants"><${Table} name="Changed plants" columns=${REVISED_COLUMNS} rows=${plants} /></div>`}
    ${more > 0 && html`<p class="links"><button type="button" onClick=${showMore}>Show ${more} more</button></p>`}`;
}

/** @param {{ docs: string | null }} props the address of the documentation page */
function NoPlants({ docs }) {
  return html`<div class="empty">
    <p><strong>The service has stored no plant since its start.</strong></p>
    <ul>
      <li><a href="#plants?from=">List the plants of the store</a>, which were stored earlier.</li>
      <li>${docs ? html`<a href=${docs}>Send a plant with the form</a> of the documentation` : html`Send a plant with <code>npx plant-store add</code>`}; it needs a <a href="#tokens">token</a>.</li>
      <li>Send a whole list with <code>npx plant-store import FILE</code>.</li>
    </ul>
  </div>`;
}
