// The verdict of the service, as the first line of the page. It needs no session: with a full disk,
// nobody can sign in.
import { Time } from './display.js';
import { html, useEffect, useState } from './preact.js';

const INTERVAL_MS = 1_000;
/** The service takes 2.5 s to notice that its store does not respond. */
const RESPONSE_TIMEOUT_MS = 3_500;
/** For so long, the page says that the service was restarted. */
const RESTART_SHOWN_MS = 10 * 60_000;

/** @type {Record<string, string>} */
const STATES = { well: 'good', warning: 'warning', damaged: 'fault', 'not ready': 'fault' };

/**
 * @typedef {{ verdict: { state: string, sentence: string, advice: string },
 *   warnings?: string[], restartedAt?: number | null }} Readiness
 * @returns {Promise<Readiness>}
 */
async function readReadiness() {
  let sentence = 'the service does not respond';
  let advice =
    'check that its process and its machine run, then read the end of its log; what you see below may be old';
  try {
    const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
    const response = await fetch('../readyz', { cache: 'no-store', redirect: 'error', signal });
    const text = await response.text();
    sentence = `../readyz is no response of the service, but has status ${response.status}`;
    advice = 'start the service; if a proxy is before it, let the proxy also pass on /readyz';
    const readiness = JSON.parse(text);
    if (readiness.verdict) return readiness;
  } catch {
    // The sentence above says what is missing.
  }
  return { verdict: { state: 'not ready', sentence, advice } };
}

export function Banner() {
  const [readiness, setReadiness] = useState(/** @type {Readiness | undefined} */ (undefined));
  useEffect(() => {
    const run = async () => {
      for (;;) {
        setReadiness(await readReadiness());
        do await new Promise(resolve => setTimeout(resolve, INTERVAL_MS));
        while (document.hidden);
      }
    };
    void run();
  }, []);
  if (readiness === undefined) return html`<p class="verdict">Asking the service for its state …</p>`;
  const { verdict, warnings = [], restartedAt } = readiness;
  const { state, sentence, advice } = verdict;
  const others = warnings.filter(each => !each.startsWith(sentence));
  const isRestarted = restartedAt && Date.now() - restartedAt < RESTART_SHOWN_MS;
  return html`<div class="verdict" data-state=${STATES[state]}>
    <p><strong>${asSentence(sentence)}</strong>${isRestarted ? html` The service was restarted: <${Time} at=${restartedAt} />.` : null}</p>
    ${advice === '' ? null : html`<p>${asSentence(advice)}</p>`}
    ${others.map(each => html`<p key=${each}>Also: ${each}.</p>`)}
  </div>`;
}

/** @param {string} text */
function asSentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}
