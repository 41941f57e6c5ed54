// The verdict of the service, as the first line of the page. It needs no session, because nobody
// can sign in while the disk is full.
import { time } from './display.js';
import { html, useEffect, useState } from './preact.js';

const INTERVAL_MS = 1_000;
/** The service takes 2.5 s to notice that its store does not respond. */
const RESPONSE_TIMEOUT_MS = 3_500;
/** For this time, the page shows that the service was restarted after an unclean end. */
const RESTART_SHOWN_MS = 10 * 60_000;

const NO_RESPONSE = {
  state: 'not ready',
  sentence: 'the service does not respond',
  advice:
    'start it if it does not run, and read the end of its log; if a proxy is before it, let it pass on /readyz, too; what you see below may be old',
};

/** @returns {Promise<any>} the body of `/readyz`; without a verdict, it is from a proxy */
async function readReadiness() {
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
  return await (await fetch('../readyz', { cache: 'no-store', signal })).json();
}

export function Banner() {
  const [readiness, setReadiness] = useState(/** @type {any} */ (undefined));
  useEffect(() => {
    const run = async () => {
      if (!document.hidden) setReadiness(await readReadiness().catch(() => null));
      setTimeout(run, INTERVAL_MS);
    };
    void run();
  }, []);
  if (readiness === undefined) return html`<p class="verdict">Asking the service for its state …</p>`;
  const { verdict = NO_RESPONSE, warnings = [], restartedAt } = readiness ?? {};
  const { state, sentence, advice } = verdict;
  // The first warning is that of the verdict.
  const [, ...others] = warnings;
  const restart =
    restartedAt && Date.now() - restartedAt < RESTART_SHOWN_MS
      ? html` <span>The service was restarted after an unclean end: ${time(restartedAt)}. The end of its log, or its supervisor, says why.</span>`
      : null;
  const asSentence = (/** @type {string} */ text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
  return html`<div class="verdict" data-state=${state}>
    <p><strong>${asSentence(sentence)}</strong>${state === 'well' ? restart : null}</p>
    ${[advice, ...others].map(each => each && html`<p key=${each}>${asSentence(each)}</p>`)}
    ${state === 'well' ? null : restart}
  </div>`;
}
