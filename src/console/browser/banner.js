// The verdict of the service, as the first line of the page. It needs no session: with a full disk,
// nobody can sign in.
import { time } from './display.js';
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
  try {
    const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
    const readiness = await (await fetch('../readyz', { cache: 'no-store', signal })).json();
    if (readiness.verdict) return readiness;
  } catch {
    // No response, or one of a proxy.
  }
  const advice =
    'start it if it does not run, and read the end of its log; if a proxy is before it, let it pass on /readyz, too; what you see below may be old';
  return { verdict: { state: 'not ready', sentence: 'the service does not respond', advice } };
}

export function Banner() {
  const [readiness, setReadiness] = useState(/** @type {Readiness | undefined} */ (undefined));
  useEffect(() => {
    const run = async () => {
      if (!document.hidden) setReadiness(await readReadiness());
      setTimeout(run, INTERVAL_MS);
    };
    void run();
  }, []);
  if (readiness === undefined) return html`<p class="verdict">Asking the service for its state …</p>`;
  const { verdict, warnings = [], restartedAt } = readiness;
  const { state, sentence, advice } = verdict;
  const others = warnings.filter(each => !each.startsWith(sentence));
  const restart =
    restartedAt && Date.now() - restartedAt < RESTART_SHOWN_MS
      ? html` <span>The service was restarted: ${time(restartedAt)}. The end of its log, or its supervisor, says why.</span>`
      : null;
  const asSentence = (/** @type {string} */ text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
  return html`<div class="verdict" data-state=${STATES[state]}>
    <p><strong>${asSentence(sentence)}</strong>${state === 'well' ? restart : null}</p>
    ${[advice, ...others].map(each => each && html`<p key=${each}>${asSentence(each)}</p>`)}
    ${state === 'well' ? null : restart}
  </div>`;
}
