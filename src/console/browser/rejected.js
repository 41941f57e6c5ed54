// The screen Rejected. It shows bodies of clients only as text: templates never insert markup.
import { escaped, numberText, Problem, Text, Time } from './display.js';
import { html, useEffect, useState } from './preact.js';
import { request, useAction, useLoad } from './requests.js';

const INTERVAL_MS = 2_000;
/** The open screen requests 15 seconds at a time, so that recording ends soon after it closes. */
const RENEWAL_INTERVAL_MS = 5_000;
const RENEWAL_MINUTES = 0.25;
const SHORT_MS = 60_000;

/**
 * @typedef {{ body: string | null, bodyBytes: number, isCut: boolean,
 *   faultAt: number | null }} Shown
 * @typedef {{ id: number, at: number, label: string | null, status: number, error: number,
 *   message: string, requestLine?: string } & Shown} Rejected
 */

export function RejectedRequests() {
  const [isOnWhileOpen, setOnWhileOpen] = useState(false);
  const { content, error, repeat } = useLoad(() => request('rejected'), INTERVAL_MS);
  const { error: problem, run } = useAction();
  const record = (/** @type {number} */ minutes) => {
    setOnWhileOpen(minutes === RENEWAL_MINUTES);
    return run(() => request('rejected', 'POST', { minutes }).then(repeat));
  };
  useEffect(() => {
    if (!isOnWhileOpen) return;
    const timer = setInterval(() => document.hidden || record(RENEWAL_MINUTES), RENEWAL_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [isOnWhileOpen]);
  if (content === undefined) return html`<${Problem} what="Not loaded" error=${error} />`;
  const { until, requests } = content;
  const isOn = until !== null;
  // After "Record for an hour", recording continues when the screen closes.
  const isShort = until - Date.now() < SHORT_MS;
  return html`
    <p>The service can record rejected requests, with the first bytes of their bodies. It stores the last 200 in memory only, and never a token. Recording is off until you switch it on.</p>
    <div class="links">
      <strong role="status">${!isOn ? 'Off' : isShort ? 'On while this screen is open' : html`On until <${Time} at=${until} />`}</strong>
      ${isOn ? null : html`<button type="button" class="main" onClick=${() => record(RENEWAL_MINUTES)}>Record while this screen is open</button>`}
      ${isOn && !isShort ? null : html`<button type="button" onClick=${() => record(60)}>Record for an hour</button>`}
      ${isOn ? html`<button type="button" onClick=${() => record(0)}>Switch off and clear</button>` : null}
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
    return html`<pre>${escaped(body)}</pre><p class="note">No place is marked, since no fault of JSON or UTF-8 is in this text.</p>`;
  const [fault = ''] = body.slice(faultAt);
  const place = fault === '' ? 'the end' : `character ${faultAt + 1}`;
  return html`<pre>${escaped(body.slice(0, faultAt))}<mark>${escaped(fault) || '(end)'}</mark>${escaped(body.slice(faultAt + fault.length))}</pre><p>The fault is marked: ${place} of the text.</p>`;
}
