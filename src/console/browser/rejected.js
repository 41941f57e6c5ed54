// The screen Rejected. It shows texts of clients only as text: templates never insert markup.
import { escaped, numberText, Problem, Text, Time } from './display.js';
import { html, useState } from './preact.js';
import { request, useAction, useLoad } from './requests.js';

const INTERVAL_MS = 2_000;

/**
 * @typedef {{ key: string, error: number, status: number, name: string, label: string | null,
 *   address?: string, count: number, firstAt: number, lastAt: number }} Group
 * @typedef {{ at: number, message: string, requestLine?: string, contentType?: string,
 *   body: string | null, bodyBytes: number, isCut: boolean, faultAt: number | null }} Example
 */

export function RejectedRequests() {
  const { content, error, repeat } = useLoad(() => request('rejected'), INTERVAL_MS);
  // Nothing moves while the user reads: what is new is shown on request.
  const [shown, setShown] = useState(/** @type {typeof content} */ (undefined));
  const [filter, setFilter] = useState('');
  const { error: problem, run } = useAction();
  if (content === undefined) return html`<${Problem} what="Not loaded" error=${error} />`;
  // A service that was restarted begins at 0.
  const current = shown && shown.count > 0 && shown.count <= content.count ? shown : content;
  if (current !== shown) setShown(current);
  const { count, groups } = current;
  const added = content.count - count;
  const isOn = content.bodiesUntil !== null;
  const toggle = () => run(() => request('rejected', 'POST', { isOn: !isOn }).then(repeat));
  const found = groups.filter((/** @type {Group} */ each) => isFound(each, filter.toLowerCase()));
  return html`
    <p>All requests that were rejected since the start, in groups of the same error, token and address. In memory only.</p>
    <div class="links">
      <span role="status">${isOn ? html`Bodies are recorded until <${Time} at=${content.bodiesUntil} />` : 'Bodies are not recorded'}</span>
      <button type="button" onClick=${toggle}>${isOn ? 'Stop and forget them' : 'Record bodies for an hour'}</button>
    </div>
    <${Problem} what="Not changed" error=${problem} />
    <${Problem} what="Not updated" error=${error} />
    <div class="fields">
      <div><label for="filter">Filter by error, token or address</label><input id="filter" value=${filter} onInput=${(/** @type {{ currentTarget: HTMLInputElement }} */ event) => setFilter(event.currentTarget.value)} autocomplete="off" spellcheck=${false} /></div>
      <button type="button" class=${added === 0 ? '' : 'main'} onClick=${() => setShown(content)}>${added === 0 ? 'Nothing new' : `Show ${added} new`}</button>
    </div>
    <h2 class="hidden">Groups, the newest first</h2>
    ${found.length > 0 ? null : html`<p class="note">${count === 0 ? 'No request was rejected.' : 'No group matches the filter.'}</p>`}
    ${found.map((/** @type {Group} */ each) => html`<${GroupEntry} key=${each.key} group=${each} />`)}`;
}

/**
 * @param {Group} group
 * @param {string} text in lower case
 */
function isFound({ error, name, label, address = '' }, text) {
  return `${error} ${name} ${label ?? ''} ${address}`.toLowerCase().includes(text);
}

/** @param {{ group: Group }} props */
function GroupEntry({ group: { key, error, status, name, label, address, count, firstAt, lastAt } }) {
  const [isOpen, setIsOpen] = useState(false);
  const token =
    label === null
      ? 'no known token'
      : html`${status === 401 ? 'expired or revoked token' : 'token'} <${Text} text=${label} />`;
  return html`<details class="entry" onToggle=${(/** @type {{ currentTarget: HTMLDetailsElement }} */ event) => setIsOpen(event.currentTarget.open)}>
    <summary><strong>${error} ${name}</strong>, ${token}, ${address === undefined ? 'other senders' : html`from <code>${address}</code>`}: <strong>${numberText(count)}</strong> <span class="note">${count === 1 ? html`at <${Time} at=${lastAt} />` : html`from <${Time} at=${firstAt} /> to <${Time} at=${lastAt} />`}</span></summary>
    ${isOpen ? html`<${Examples} group=${key} />` : null}
  </details>`;
}

/** @param {{ group: string }} props */
function Examples({ group }) {
  const { content, error } = useLoad(() =>
    request(`rejected/examples?${new URLSearchParams({ key: group })}`),
  );
  /** @type {Example[] | undefined} */
  const examples = content?.examples;
  return html`<${Problem} what="Not loaded" error=${error} />
    ${examples?.length === 0 ? html`<p class="note">The service no longer has an example.</p>` : null}
    ${examples?.map((each, index) => html`<${ExampleEntry} key=${index} example=${each} />`)}`;
}

/** @param {{ example: Example }} props */
function ExampleEntry({
  example: { at, message, requestLine, contentType, body, bodyBytes, isCut, faultAt },
}) {
  const note = body === null ? '' : isCut ? '; its beginning:' : ':';
  return html`<p><${Time} at=${at} />: <span class="text">${message}</span></p>
    <p class="note">Request <${Text} text=${requestLine} />, Content-Type <${Text} text=${contentType} />, body of ${numberText(bodyBytes)} bytes${note}</p>
    ${body === null ? null : html`<${Body} body=${body} faultAt=${faultAt} />`}`;
}

/** @param {{ body: string, faultAt: number | null }} props */
function Body({ body, faultAt }) {
  if (faultAt === null) return html`<pre>${escaped(body)}</pre>`;
  const [fault = ''] = body.slice(faultAt);
  const place = fault === '' ? 'the end' : `character ${faultAt + 1}`;
  return html`<pre>${escaped(body.slice(0, faultAt))}<mark>${escaped(fault) || '(end)'}</mark>${escaped(body.slice(faultAt + fault.length))}</pre><p>The fault is marked: ${place} of the text.</p>`;
}
