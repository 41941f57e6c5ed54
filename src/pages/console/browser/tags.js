// The screen Tags: how many plants have which tag. It counts when it is asked, since that reads the
// whole store.
import { COUNT, clientText, folded, Table, time } from './display.js';
import { tagLink } from './newest.js';
import { html, useEffect, useMemo, useRef, useState } from './preact.js';
import { request, useLoad } from './requests.js';
import { readText } from './search.js';

/** Rows that are shown at first, and that each click adds. */
const SHOWN_TAGS = 200;
/** More tags are counted together, because a client may send another one with each plant. */
const COUNTED_TAGS_MAX = 100_000;
const ORDER = new Intl.Collator();

/**
 * Plants by tag, plants without a tag, and plants with other tags than these, in the `read` part of
 * `total` revisions. `at` is the time at which the counting began.
 *
 * @typedef {{ phase: 'counting' | 'complete' | 'stopped', at: number, tags: Map<string, number>,
 *   untagged: number, others: number, read: number, total: number | null }} Counted
 */

/** The tags that were counted last, for the way back from the plants of a tag. @type {Counted | undefined} */
let lastCounted;

/** What the user chose, and where the page was. They stay for the way back. */
const view = { filter: '', isByName: false, shown: SHOWN_TAGS, scrollY: 0 };

/** @typedef {[tag: string | undefined, plants: number]} Row undefined: plants without a tag */

/** @type {Record<string, (row: Row) => unknown>} */
const COLUMNS = {
  Tag: ([tag]) =>
    tag === undefined
      ? html`<a class="tag" href="#plants?untagged=1"><em>without a tag</em></a>`
      : tagLink(tag),
  Plants: ([, plants]) => COUNT.format(plants),
};

/** @param {(counted: Counted) => boolean} onCounted returns whether the counting goes on */
async function countTags(onCounted) {
  const at = Date.now();
  const { revisions: total } = await request('revisions/count');
  /** @type {Counted} */
  let counted = { phase: 'counting', at, tags: new Map(), untagged: 0, others: 0, read: 0, total };
  for (let from = ''; onCounted(counted) && counted.phase === 'counting'; ) {
    const part = await request(`tags?${new URLSearchParams({ from })}`);
    from = part.next ?? '';
    const tags = new Map(counted.tags);
    let others = counted.others + part.others;
    for (const [tag, plants] of part.tags) {
      if (tags.has(tag) || tags.size < COUNTED_TAGS_MAX) tags.set(tag, (tags.get(tag) ?? 0) + plants);
      else others += plants;
    }
    counted = {
      ...counted,
      phase: part.next === null ? 'complete' : 'counting',
      tags,
      untagged: counted.untagged + part.untagged,
      others,
      read: counted.read + part.searched,
    };
  }
}

export function Tags() {
  const [round, setRound] = useState(0);
  const again = () => {
    lastCounted = undefined;
    view.shown = SHOWN_TAGS;
    setRound(round + 1);
  };
  return html`<${CountedTags} key=${round} onAgain=${again} />`;
}

/** @param {{ onAgain: () => void }} props */
function CountedTags({ onAgain }) {
  const [counted, setCounted] = useState(lastCounted);
  const [, redraw] = useState(0);
  const change = (/** @type {Partial<typeof view>} */ part) => {
    Object.assign(view, part);
    redraw(previous => previous + 1);
  };
  const isStopped = useRef(lastCounted !== undefined);
  const take = (/** @type {Counted} */ next) => {
    if (isStopped.current) return false;
    if (next.phase === 'complete') lastCounted = next;
    setCounted(next);
    return true;
  };
  const { problem } = useLoad(async () => isStopped.current || countTags(take));
  const stop = () => {
    isStopped.current = true;
    setCounted(last => last && (last.phase === 'complete' ? last : { ...last, phase: 'stopped' }));
  };
  useEffect(() => {
    scrollTo(0, view.scrollY);
    view.scrollY = 0;
    return stop;
  }, []);
  const { filter, isByName, shown } = view;
  const found = useMemo(() => foundTags(counted?.tags, filter, isByName), [counted?.tags, filter, isByName]);
  if (counted === undefined || problem) return problem;
  const { phase, at, tags, untagged, others, read, total } = counted;
  /** @type {Row[]} */
  const rows = untagged > 0 && filter === '' ? [[undefined, untagged], ...found] : found;
  const isCounting = phase === 'counting';
  const onInput = (/** @type {{ currentTarget: HTMLInputElement }} */ event) =>
    change({ filter: event.currentTarget.value, shown: SHOWN_TAGS });
  const leave = (/** @type {Event} */ { target }) => {
    if (target instanceof Element && target.closest('a')) view.scrollY = scrollY;
  };
  // While the tags are counted, their order changes, so they are shown at the end.
  return html`
    <p class="links">
      <span role="status">${isCounting ? 'Counting …' : `${phase === 'stopped' ? 'Stopped. So far: ' : ''}${tagsText(tags.size)}`}</span>
      ${
        isCounting
          ? html`<span>${tagsText(tags.size)} ${readText(read, total)}.</span><button type="button" onClick=${stop}>Stop</button>`
          : html`<span>Counted ${time(at)}.</span><button type="button" onClick=${onAgain}>Count again</button>`
      }
    </p>
    ${
      !isCounting &&
      tags.size > 0 &&
      html`<div class="fields">
        <div>
          <label for="tag-filter">Tags that contain</label>
          <input id="tag-filter" value=${filter} onInput=${onInput} autocomplete="off" spellcheck=${false} />
        </div>
        <div class="choice" role="group" aria-label="Order">${['number', 'name'].map(
          order =>
            html`<button type="button" aria-pressed=${isByName === (order === 'name')} onClick=${() => change({ isByName: order === 'name' })}>by ${order}</button>`,
        )}</div>
        <span role="status" class="note">${filter !== '' && `${COUNT.format(found.length)} of ${COUNT.format(tags.size)}`}</span>
      </div>`
    }
    ${!isCounting && tags.size > 0 && found.length === 0 && html`<p>No tag contains ${clientText(filter)}.</p>`}
    ${!isCounting && rows.length > 0 && html`<div class="tags" onClick=${leave}><${Table} name=${`Tags, by ${isByName ? 'name' : 'number of plants'}`} numbers=${['Plants']} columns=${COLUMNS} rows=${rows.slice(0, shown)} /></div>`}
    ${!isCounting && others > 0 && html`<p class="note">${COUNT.format(others)} plants have other tags: of more than 200 bytes, or beyond the first ${COUNT.format(COUNTED_TAGS_MAX)}.</p>`}
    ${
      !isCounting &&
      rows.length > shown &&
      html`<p class="links"><button type="button" onClick=${() => change({ shown: shown + SHOWN_TAGS })}>Show ${Math.min(SHOWN_TAGS, rows.length - shown)} more</button></p>`
    }`;
}

/**
 * The tags that contain a text, in the order that the user chose.
 *
 * @param {Map<string, number> | undefined} tags
 * @param {string} filter
 * @param {boolean} isByName
 * @returns {Row[]}
 */
function foundTags(tags, filter, isByName) {
  const part = folded(filter);
  const found = [...(tags ?? [])].filter(([tag]) => folded(tag).includes(part));
  return isByName
    ? found.toSorted(([one], [two]) => ORDER.compare(one, two))
    : found.toSorted(([, one], [, two]) => two - one);
}

/** @param {number} count */
function tagsText(count) {
  return count === 1 ? '1 tag.' : `${COUNT.format(count)} tags.`;
}
