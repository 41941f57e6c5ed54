// The screen Rejected. Bodies of clients are shown as text only: templates never insert markup.
import { numberText, Problem, Text, Time } from './display.js';
import { html, useEffect, useState } from './preact.js';
import { request, useAction, useLoad } from './requests.js';

const INTERVAL_MS = 2_000;
/** The open screen asks for 15 seconds at a time, so that recording ends with the screen. */
const RENEWAL_INTERVAL_MS = 5_000;
const RENEWAL_MINUTES = 0.25;

/**
 * @typedef {{ at: number, label: string | null, status: number, error: number, message: string,
 *   path: string, body: string | null, bodyBytes: number, faultAt: number | null }} Rejected
 */

export function RejectedRequests() {
  const [isOnWhileOpen, setOnWhileOpen] = useState(false);
  const { content, error, repeat } = useLoad('rejected', INTERVAL_MS);
  const { error: problem, run } = useAction();
  const record = (/** @type {number} */ minutes) =>
    run(async () => {
      await request('rejected', 'POST', { minutes });
      repeat();
    });
  useEffect(() => {
    if (!isOnWhileOpen) return;
    void record(RENEWAL_MINUTES);
    const timer = setInterval(() => document.hidden || record(RENEWAL_MINUTES), RENEWAL_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [isOnWhileOpen]);
  const choose = (/** @type {number} */ minutes) => {
    setOnWhileOpen(minutes === RENEWAL_MINUTES);
    if (minutes !== RENEWAL_MINUTES) void record(minutes);
  };
  const isOn = content?.until > Date.now();
  return html`
    <p>The service can record rejected requests, with the first bytes of their bodies. It stores the last 200 in memory only, and never a token. Recording is off until you switch it on.</p>
    <div class="links">
      <p role="status"><strong>${content === undefined ? '' : isOnWhileOpen ? 'On while this screen is open.' : isOn ? 'On' : 'Off.'}</strong>${isOn && !isOnWhileOpen ? html` until <${Time} at=${content.until} />.` : ''}</p>
      ${isOnWhileOpen ? null : html`<button type="button" class="main" onClick=${() => choose(RENEWAL_MINUTES)}>Record while this screen is open</button>`}
      <button type="button" onClick=${() => choose(60)}>Record for an hour</button>
      ${isOn || isOnWhileOpen ? html`<button type="button" onClick=${() => choose(0)}>Switch off</button>` : null}
    </div>
    <${Problem} what="Not changed" error=${problem} />
    <${Problem} what="Not loaded" error=${error} />
    ${content === undefined ? null : html`<${List} requests=${content.requests} isOn=${isOn} />`}`;
}

/** @param {{ requests: Rejected[], isOn: boolean }} props newest first */
function List({ requests, isOn }) {
  if (requests.length === 0)
    return html`<p class="note">${isOn ? 'No request was rejected since recording began.' : 'No request is recorded.'}</p>`;
  // An entry has no id. Counted from the oldest one of its millisecond, its key stays the same.
  const counts = new Map();
  const keys = requests.toReversed().map(({ at }) => {
    counts.set(at, (counts.get(at) ?? 0) + 1);
    return `${at}-${counts.get(at)}`;
  });
  return html`<h2 class="hidden">Requests, newest first</h2>${requests.map((each, index) => html`<${Entry} key=${keys[requests.length - 1 - index]} request=${each} />`)}`;
}

/** @param {{ request: Rejected }} props */
function Entry({ request: { at, label, status, error, message, path, body, bodyBytes, faultAt } }) {
  return html`<details class="entry">
    <summary><${Time} at=${at} />${' '}<code>${error}</code>${' '}<span class="text">${message}</span>${' '}<span class="note">(${label === null ? 'no valid token' : html`token <${Text} text=${label} />`})</span></summary>
    <p class="note">Status ${status}, error ${error}, path <${Text} text=${path} />, body of ${numberText(bodyBytes)} bytes</p>
    ${body === null ? html`<p>The body was not read.</p>` : html`<${Body} body=${body} faultAt=${faultAt} />`}
  </details>`;
}

/**
 * An escaped byte or character is marked as a whole.
 *
 * @param {{ body: string, faultAt: number | null }} props
 */
function Body({ body, faultAt }) {
  if (faultAt === null)
    return html`<pre>${body}</pre><p class="note">The fault has no single place in the body.</p>`;
  const [fault = ''] = /^(?:\\x[0-9A-Fa-f]{2}|.)/su.exec(body.slice(faultAt)) ?? [];
  const where =
    fault === ''
      ? 'at the end of the text, marked as (end)'
      : `at character ${faultAt + 1} of the text: ${fault}`;
  return html`<pre>${body.slice(0, faultAt)}<mark>${fault || '(end)'}</mark>${body.slice(faultAt + fault.length)}</pre><p>The fault is ${where}</p>`;
}
