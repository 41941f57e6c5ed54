// The screen Rejected: groups of rejected requests, with examples. Texts of clients are shown only
// as text, because templates never insert markup.
import { ageText, clientText, escaped, exactTime, numberText, time } from './display.js';
import { ERROR_WORDS } from './error-words.js';
import { idLink } from './newest.js';
import { html, useEffect, useState } from './preact.js';
import { request, useAction, useLoad } from './requests.js';

const INTERVAL_MS = 2_000;
/** The error of a body that exceeds the limit. */
const TOO_LARGE = 41301;
const TOKEN_REJECTED = 40102;
const PLANT_CHANGED = 41201;

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
 *   count: number, firstAt: number, lastAt: number, reasons: [text: string, count: number][] }} Group
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
    <p class="note">All requests that were rejected since the start, in groups of the same error, token and address. A restart clears this list.</p>
    ${failure}${problem}
    <div class="fields">
      <div>
        <label for="filter">Filter by a word</label>
        <input id="filter" value=${filter} onInput=${onInput} autocomplete="off" spellcheck=${false} />
      </div>
      <span role="status" class="note">${isOn ? html`Bodies are recorded until ${exactTime(content.bodiesUntil)}` : 'Bodies are not recorded'}</span>
      <button type="button" onClick=${toggle}>${isOn ? 'Stop and forget them' : 'Record bodies for an hour'}</button>
    </div>
    <div class="title">
      <h2>Groups</h2>
      <span class="note">the newest first</span>
      ${
        added === 0
          ? html`<span class="note">Nothing new</span>`
          : html`<button type="button" class="main" onClick=${() => setShown(content)}>Show ${added} new</button>`
      }
    </div>
    ${current.count === 0 && NOTHING_REJECTED}
    ${current.count > 0 && found.length === 0 && html`<p class="note">No group matches the filter. Clear it to see all.</p>`}
    ${found.map(each => html`<${GroupEntry} key=${each.key} ...${{ ...each, group: each.key }} />`)}`;
}

/** The texts of a group in which the filter looks. @param {Group} group */
function searchedText({ error, name, sentence, reasons, label, address }) {
  const texts = [
    error,
    name,
    ERROR_WORDS[error]?.words,
    sentence,
    label,
    address,
    ...reasons.map(([text]) => text),
  ];
  return texts.join(' ').toLowerCase();
}

/**
 * What is known of a sender whose token the service does not have. With any other error, the service
 * did not look up the token.
 *
 * @type {Record<number, string>}
 */
const SENDERS_WITHOUT_TOKEN = { 40101: 'no token', [TOKEN_REJECTED]: 'unknown token' };

/** @param {Omit<Group, 'key'> & { group: string }} props */
function GroupEntry({ group, error, name, label, address, count, firstAt, lastAt, ...found }) {
  const { title, explanation, reasonCount } = titleOf({ error, label, ...found });
  const [isOpen, setIsOpen] = useState(false);
  const sender =
    label === null ? (SENDERS_WITHOUT_TOKEN[error] ?? 'token not checked') : html`token ${clientText(label)}`;
  const origin = address === undefined ? 'other senders' : html`from <code>${address}</code>`;
  const isLong = ageText(firstAt) !== ageText(lastAt);
  return html`<details class="entry" onToggle=${(/** @type {{ currentTarget: HTMLDetailsElement }} */ event) => setIsOpen(event.currentTarget.open)}>
    <summary>
      <span class="sentence">${title}</span>
      ${explanation && html`<span class="note">${explanation}</span>`}
      <span class="note"><strong>${error}</strong> ${name}, ${sender}, ${origin}: <strong>${numberText(count)}</strong> ${count === 1 ? 'request' : 'requests'}${reasonCount < count && html`, <strong>${numberText(reasonCount)}</strong> for this reason`}, ${isLong && html`from ${time(firstAt)} to `}${time(lastAt)}</span>
    </summary>
    ${isOpen && html`<${Examples} group=${group} error=${error} sentence=${found.sentence} />`}
  </details>`;
}

/**
 * What is wrong, in words: the most frequent reason, and below it the sentence of the error.
 *
 * @param {Pick<Group, 'error' | 'label' | 'sentence' | 'tokenFault' | 'reasons'>} group
 * @returns {{ title: unknown, explanation?: string | false, reasonCount: number }}
 */
function titleOf({ error, label, sentence, tokenFault, reasons }) {
  const all = { reasonCount: Number.POSITIVE_INFINITY };
  if (tokenFault !== null)
    return { title: html`The token ${clientText(label ?? undefined)} is ${tokenFault}`, ...all };
  if (error === TOKEN_REJECTED && label === null)
    return { title: 'The store does not have this token; it may be mistyped, or of another store', ...all };
  const [[reason, reasonCount] = [sentence, Number.POSITIVE_INFINITY]] = reasons;
  // The reason of a changed plant says more than the sentence.
  const explanation = error !== PLANT_CHANGED && reason !== sentence && capitalized(sentence);
  return { title: capitalized(reason), explanation, reasonCount };
}

/** @param {string} text */
function capitalized(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/** @param {{ group: string, error: number, sentence: string }} props */
function Examples({ group, error, sentence }) {
  const { content, problem } = useLoad(() =>
    request(`rejected/examples?${new URLSearchParams({ key: group })}`),
  );
  /** @type {Example[] | undefined} */
  const examples = content?.examples;
  if (examples?.length === 0) return html`<p class="note">The service no longer has an example.</p>`;
  return html`<div class="examples">${problem}${examples?.map(
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
      ${bodyBytes === null ? 'no body was read' : `body of ${numberText(bodyBytes)} bytes`}
      ${bodyBytes === null && declaredBytes ? ` of ${numberText(declaredBytes)} bytes` : ''}
      ${error === TOO_LARGE ? `; a body may have ${numberText(content.bodyBytesMax)} bytes (--body-limit)` : ''}
      ${body === null ? '' : isCut ? '; its beginning:' : ':'}
    </p>
    ${body !== null && (faultAt === null ? html`<pre>${escaped(body)}</pre>` : markedBody(body, faultAt))}`,
  )}</div>`;
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
