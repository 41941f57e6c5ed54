// The screen Rejected. It shows bodies of clients only as text: templates never insert markup.
import { escaped, numberText, Problem, Text, Time } from './display.js';
import { html } from './preact.js';
import { request, useAction, useLoad } from './requests.js';

const INTERVAL_MS = 2_000;

/**
 * @typedef {{ body: string | null, bodyBytes: number, isCut: boolean,
 *   faultAt: number | null }} Shown
 * @typedef {{ id: number, at: number, label: string | null, status: number, error: number,
 *   message: string, requestLine?: string } & Shown} Rejected
 */

export function RejectedRequests() {
  const { content, error, repeat } = useLoad(() => request('rejected'), INTERVAL_MS);
  const { error: problem, run } = useAction();
  if (content === undefined) return html`<${Problem} what="Not loaded" error=${error} />`;
  const { until, requests } = content;
  const isOn = until !== null;
  const toggle = () => run(() => request('rejected', 'POST', { isOn: !isOn }).then(repeat));
  return html`
    <p>The service can record rejected requests for an hour, with the first bytes of their bodies. It stores the last 200 in memory only, and never a token.</p>
    <div class="links">
      <strong role="status">${isOn ? html`On until <${Time} at=${until} />` : 'Off'}</strong>
      <button type="button" class="main" onClick=${toggle}>${isOn ? 'Switch off and clear' : 'Record for an hour'}</button>
    </div>
    <${Problem} what="Not changed" error=${problem} />
    <${Problem} what="Not updated" error=${error} />
    <h2 class="hidden">Requests, newest first</h2>
    ${requests.length > 0 ? null : html`<p class="note">${isOn ? 'No request was rejected since recording began.' : 'No request is recorded.'}</p>`}
    ${requests.map((/** @type {Rejected} */ each) => html`<${Entry} key=${each.id} request=${each} />`)}`;
}

/** @param {{ request: Rejected }} props */
function Entry({
  request: { at, label, status, error, message, requestLine, body, bodyBytes, isCut, faultAt },
}) {
  const sender = status === 401 ? 'no valid token' : 'token not checked';
  const size =
    body === null ? 'not read' : `of ${numberText(bodyBytes)} bytes${isCut ? '; its beginning:' : ''}`;
  return html`<details class="entry">
    <summary><${Time} at=${at} />${' '}<code>${error}</code>${' '}<span class="text">${message}</span>${' '}<span class="note">(${label === null ? sender : html`token <${Text} text=${label} />`})</span></summary>
    <p class="note">Status ${status}, request <${Text} text=${requestLine} />, body ${size}</p>
    ${body === null ? null : html`<${Body} body=${body} faultAt=${faultAt} />`}
  </details>`;
}

/** @param {{ body: string, faultAt: number | null }} props */
function Body({ body, faultAt }) {
  if (faultAt === null)
    return html`<pre>${escaped(body)}</pre><p class="note">The text shown is valid JSON and UTF-8 so far; the message above names the fault.</p>`;
  const [fault = ''] = body.slice(faultAt);
  const place = fault === '' ? 'the end' : `character ${faultAt + 1}`;
  return html`<pre>${escaped(body.slice(0, faultAt))}<mark>${escaped(fault) || '(end)'}</mark>${escaped(body.slice(faultAt + fault.length))}</pre><p>The fault is marked: ${place} of the text.</p>`;
}
