// The screen Rejected: groups of rejected requests, with examples. Texts of clients are shown only
// as text, because templates never insert markup.
import { ageText, clientText, escaped, exactTime, numberText, time } from './display.js';
import { capitalized, ERROR_WORDS, reasonWords, titleText } from './error-words.js';
import { idLink } from './newest.js';
import { html, useEffect, useState } from './preact.js';
import { request, useAction, useLoad } from './requests.js';

const INTERVAL_MS = 2_000;
/** The error of a body that exceeds the limit. */
const TOO_LARGE = 41301;
/** So many plants of a group the service names at most. */
const PLANT_IDS_MAX = 3;
/** The most frequent reasons that a heading names. */
const REASONS_SHOWN = 2;

const NOTHING_REJECTED = html`<div class="empty">
  <p><strong>No request was rejected.</strong></p>
  <p>
    When a program sends something wrong, such as a bad id or an old token, you see here what it sent and what is wrong.${' '}
    If you expect a program and see nothing, it may use another address: it never reached this service.
  </p>
</div>`;

/**
 * @typedef {{ key: string, error: number, status: number, name: string, sentence: string,
 *   label: string | null, tokenFault: 'revoked' | 'expired' | null, address?: string,
 *   count: number, firstAt: number, lastAt: number, reasons: [text: string, count: number][],
 *   plantIds: string[] }} Group
 * @typedef {{ at: number, message: string, requestLine?: string, contentType?: string, plantId: string,
 *   body: string | null, bodyBytes: number | null, declaredBytes: number | null, isCut: boolean,
 *   faultAt: number | null }} Example
 */

/** @param {{ query: string }} props the query of the address, which may have a filter */
export function RejectedRequests({ query }) {
  const { content, problem, repeat } = useLoad(() => request('rejected'), INTERVAL_MS);
  // New content is shown only on request, so that nothing moves while the user reads.
  const [shown, setShown] = useState(/** @type {typeof content} */ (undefined));
  const [filter, setFilter] = useState('');
  useEffect(() => setFilter(new URLSearchParams(query).get('filter') ?? ''), [query]);
  const { problem: failure, run } = useAction();
  if (content === undefined) return problem;
  // After a restart, the count of the service begins at 0.
  const current = shown && shown.count > 0 && shown.count <= content.count ? shown : content;
  if (current !== shown) setShown(current);
  const added = content.count - current.count;
  const isOn = content.bodiesUntil !== null;
  const toggle = () => run(() => request('rejected', 'POST', { isOn: !isOn }).then(repeat));
  /** @type {Group[]} */
  const found = current.groups.filter((/** @type {Group} */ group) =>
    searchedText(group).includes(filter.toLowerCase()),
  );
  const onInput = (/** @type {{ currentTarget: HTMLInputElement }} */ event) =>
    setFilter(event.currentTarget.value);
  return html`
    <p class="note">All requests that were rejected since the start. Those with the same problem, token and address stand together. A restart clears this list.</p>
    ${failure}${problem}
    <div class="fields">
      <div>
        <label for="filter">Filter by a word</label>
        <input id="filter" value=${filter} onInput=${onInput} autocomplete="off" spellcheck=${false} />
      </div>
      <span role="status" class="note">${isOn ? html`Contents are recorded until ${exactTime(content.bodiesUntil)}` : 'Contents are not recorded'}</span>
      <button type="button" onClick=${toggle}>${isOn ? 'Stop and forget them' : 'Record contents for an hour'}</button>
    </div>
    <div class="title">
      <h2>Problems</h2>
      <span class="note">the newest first</span>
      ${
        added === 0
          ? html`<span class="note">Nothing new</span>`
          : html`<button type="button" class="main" onClick=${() => setShown(content)}>Show ${added} new</button>`
      }
    </div>
    ${current.count === 0 && NOTHING_REJECTED}
    ${current.count > 0 && found.length === 0 && html`<p class="note">No problem matches the filter. Clear it to see all.</p>`}
    ${found.map(each => html`<${GroupEntry} key=${each.key} ...${{ ...each, group: each.key, isOn }} />`)}`;
}

/** The texts of a group in which the filter looks. @param {Group} group */
function searchedText({ error, name, sentence, reasons, label, address, plantIds }) {
  const texts = [
    ...plantIds,
    error,
    name,
    ERROR_WORDS[error]?.words,
    sentence,
    label,
    address,
    ...reasons.flatMap(([text]) => [text, titleText(reasonWords(error, text))]),
  ];
  return texts.join(' ').toLowerCase();
}

/**
 * What is known of a sender whose token the service does not have. With any other error, the service
 * did not look up the token.
 *
 * @type {Record<number, string>}
 */
const SENDERS_WITHOUT_TOKEN = { 40101: 'no token', 40102: 'unknown token' };

/** @param {Omit<Group, 'key'> & { group: string, isOn: boolean }} props */
function GroupEntry({ group, isOn, ...listed }) {
  const [isOpen, setIsOpen] = useState(false);
  const [loaded, setLoaded] = useState(/** @type {Group | undefined} */ (undefined));
  // The list may be older than the examples. The heading is of the same time as they.
  const shown = loaded && loaded.count >= listed.count ? loaded : listed;
  const { error, name, label, address, count, firstAt, lastAt, plantIds, sentence } = shown;
  const sender =
    label === null ? (SENDERS_WITHOUT_TOKEN[error] ?? 'token not checked') : html`token ${clientText(label)}`;
  const origin = address === undefined ? 'other senders' : html`from <code>${address}</code>`;
  const isLong = ageText(firstAt) !== ageText(lastAt);
  return html`<details class="entry" onToggle=${(/** @type {{ currentTarget: HTMLDetailsElement }} */ event) => setIsOpen(event.currentTarget.open)}>
    <summary>
      <span class="sentence">${titleOf(shown)}</span>
      <span class="note">${plantsText(plantIds, count)}${sender}: <strong>${numberText(count)}</strong> ${count === 1 ? 'request' : 'requests'}, ${isLong && html`from ${time(firstAt)} to `}${time(lastAt)}</span>
    </summary>
    ${
      isOpen &&
      html`<div class="examples">
        <p class="note"><strong>${error}</strong> ${name}, ${origin}: ${sentence}</p>
        <${Examples} key=${listed.count} ...${{ group, error, sentence, isOn }} onLoad=${setLoaded} />
      </div>`
    }
  </details>`;
}

/** The newest plants, before the sender. @param {string[]} ids @param {number} count of requests */
function plantsText(ids, count) {
  if (ids.length === 0) return '';
  const hasMore = ids.length === PLANT_IDS_MAX && count > PLANT_IDS_MAX;
  return `${ids.length === 1 ? 'plant' : 'plants'} ${ids.join(', ')}${hasMore ? ' …' : ''}, `;
}

/**
 * What is wrong, in words: the reason, or the most frequent ones with their counts.
 *
 * @param {Pick<Group, 'error' | 'label' | 'tokenFault' | 'reasons' | 'count'>} group
 */
function titleOf({ error, label, tokenFault, reasons, count }) {
  if (tokenFault !== null) return html`The token ${clientText(label ?? undefined)} is ${tokenFault}`;
  // Different messages may be the same in words.
  const counts = /** @type {Map<string, number>} */ (new Map());
  for (const [reason, of] of reasons) {
    const words = reasonWords(error, reason);
    counts.set(words, (counts.get(words) ?? 0) + of);
  }
  const [[words] = [reasonWords(error)], ...others] = counts;
  if (others.length === 0) return titleText(words);
  const first = [...counts].sort(([, a], [, b]) => b - a).slice(0, REASONS_SHOWN);
  const rest = count - first.reduce((sum, [, of]) => sum + of, 0);
  const texts = [...first, .../** @type {typeof first} */ (rest > 0 ? [['other reasons', rest]] : [])]
    .map(([reason, of]) => `${reason} ${numberText(of)}`)
    .join(', ');
  return capitalized(texts);
}

/**
 * @param {{ group: string, error: number, sentence: string, isOn: boolean,
 *   onLoad: (group: Group) => void }} props
 */
function Examples({ group, error, sentence, isOn, onLoad }) {
  const { content, problem } = useLoad(async () => {
    const found = await request(`rejected/examples?${new URLSearchParams({ key: group })}`);
    if (found.group !== null) onLoad(found.group);
    return found;
  });
  /** @type {Example[] | undefined} */
  const examples = content?.examples;
  if (examples?.length === 0) return html`<p class="note">The service no longer has an example.</p>`;
  return html`${problem}${examples?.map(
    ({
      at,
      message,
      requestLine,
      contentType,
      plantId,
      body,
      bodyBytes,
      declaredBytes,
      isCut,
      faultAt,
    }) => html`
    <p>${exactTime(at)}${plantId && html`, plant ${idLink(plantId)}`}${message !== sentence && html`, response: <span class="text">${message}</span>`}</p>
    <p class="note">
      Request ${clientText(requestLine)}, Content-Type ${clientText(contentType)},${' '}
      ${bodyBytes === null ? 'the content was not read' : `content of ${numberText(bodyBytes)} bytes`}
      ${bodyBytes === null && declaredBytes ? ` of ${numberText(declaredBytes)} bytes` : ''}
      ${error === TOO_LARGE ? `; it may have ${numberText(content.bodyBytesMax)} bytes (--body-limit)` : ''}
      ${body === null ? '' : isCut ? '; its beginning:' : ':'}
    </p>
    ${body === null && bodyBytes !== null && bodyBytes > 0 && html`<p class="note">Content sent: not recorded; ${isOn ? '' : 'press Record contents and '}let it be sent again</p>`}
    ${body !== null && (faultAt === null ? html`<pre>${escaped(body)}</pre>` : markedBody(body, faultAt))}`,
  )}`;
}

/** @param {string} body @param {number} faultAt */
function markedBody(body, faultAt) {
  const [fault = ''] = body.slice(faultAt);
  const place = fault === '' ? 'the end' : `character ${faultAt + 1}`;
  const before = escaped(body.slice(0, faultAt));
  const after = escaped(body.slice(faultAt + fault.length));
  return html`
    <pre>${before}<mark>${escaped(fault) || '(end)'}</mark>${after}</pre>
    <p>The fault is marked: ${place} of the text.</p>`;
}
