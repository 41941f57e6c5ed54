// The screen Now: is the service well, and what does it do at this moment?
import { CopyButton, numberText, Problem } from './display.js';
import { Plot, timeText } from './plot.js';
import { html, useRef, useState } from './preact.js';
import { request, useRepeated } from './requests.js';

const INTERVAL_MS = 1_000;
const HISTORY_SECONDS = 900;
/** A shorter time axis would draw the first seconds as a few long lines. */
const SHORTEST_AXIS_SECONDS = 60;

/**
 * Lines differ in color and in pattern. The style of their swatches is the same.
 *
 * @type {import('./plot.js').Line[]}
 */
const OUTCOMES = [
  { name: 'created', label: 'created' },
  { name: 'revised', label: 'revised', dash: [8, 4] },
  { name: 'unchanged', label: 'unchanged', dash: [2, 3] },
  { name: 'failed', label: 'other responses', dash: [12, 3, 3, 3] },
];

/** @type {{ title: string, unit: string, lines: import('./plot.js').Line[] }[]} */
const PANELS = [
  {
    title: 'Response time',
    unit: 'ms',
    lines: [
      { name: 'p50', label: 'p50' },
      { name: 'p99', label: 'p99', dash: [8, 4] },
    ],
  },
  { title: 'Plants in flight', unit: 'plants', lines: [{ name: 'inFlight', label: 'now' }] },
  { title: 'Batch size', unit: 'plants', lines: [{ name: 'batchPlants', label: 'mean' }] },
  { title: 'Commit time', unit: 'ms', lines: [{ name: 'commitMs', label: 'mean' }] },
];

/** @typedef {Map<number, Record<string, number | null>>} Samples by second since 1970 */

/** @param {{ isLost: boolean }} props without a connection, the readiness is unknown */
export function Now({ isLost }) {
  const samples = useRef(/** @type {Samples} */ (new Map()));
  const [now, setNow] = useState(/** @type {any} */ (undefined));
  const [cursor, setCursor] = useState(/** @type {number | undefined} */ (undefined));
  const { error } = useRepeated(
    async () => {
      const newest = Math.max(...samples.current.keys());
      const body = await request(samples.current.size === 0 ? 'now' : `now?after=${newest}`);
      for (const [index, sample] of body.samples.entries()) samples.current.set(body.from + index, sample);
      setNow({ ...body, seconds: axisOf(samples.current) });
    },
    INTERVAL_MS,
    [],
  );
  if (now === undefined) return html`<${Problem} what="Not loaded" error=${error} />`;
  const { seconds } = now;
  const shown = seconds[cursor ?? (isLost ? seconds.length - 1 : -1)];
  const props = { samples: samples.current, seconds, cursor, onCursor: setCursor };
  return html`
    ${isLost ? null : html`<${Readiness} readiness=${now.readiness} />`}
    <${Problem} what="Not updated" error=${error} />
    ${now.hasPlants ? null : html`<${FirstPlant} curl=${now.curl} />`}
    <p class="note">${`Values ${shown === undefined ? 'of the last second' : `at ${timeText(shown)}`}. Plots of ${spanText(seconds.length)}. Plant store ${now.version}.`}</p>
    <${Panel} ...${props} title="Plants per second" unit="per second" lines=${OUTCOMES} height=${280} />
    <div class="panels">${PANELS.map(panel => html`<${Panel} key=${panel.title} ...${props} ...${panel} height=${150} />`)}</div>`;
}

/**
 * Forgets old samples. A second without a sample stays in the axis: the service did not run then.
 *
 * @param {Samples} samples
 */
function axisOf(samples) {
  const newest = Math.max(...samples.keys());
  if (samples.size === 0) return [];
  for (const second of samples.keys()) if (second <= newest - HISTORY_SECONDS) samples.delete(second);
  const length = Math.max(newest - Math.min(...samples.keys()) + 1, SHORTEST_AXIS_SECONDS);
  return Array.from({ length }, (_, index) => newest - length + 1 + index);
}

/** @param {number} seconds */
function spanText(seconds) {
  return seconds < 120 ? 'the last minute' : `the last ${Math.floor(seconds / 60)} minutes`;
}

/**
 * @typedef {{ name: string, ok: boolean, detail: string }} Check
 * @param {{ readiness: { status: string, reason?: string, checks: Check[] } }} props
 */
function Readiness({ readiness: { status, reason, checks } }) {
  // The reason itself is a check, too.
  const failing = checks.filter(({ ok, detail }) => !ok && detail !== reason);
  const isReady = status === 'ready';
  const text = isReady
    ? `Ready: plants can be stored${failing.length === 0 ? '. All checks pass.' : ', but a check fails.'}`
    : `Not ready: ${reason}.`;
  const state = !isReady ? 'fault' : failing.length === 0 ? 'good' : 'warning';
  return html`<div class="verdict" data-state=${state}>
    <p role="status"><strong>${text}</strong></p>
    ${failing.length === 0 ? null : html`<ul>${failing.map(({ name, detail }) => html`<li>Check <code>${name}</code> fails: ${detail}.</li>`)}</ul>`}
  </div>`;
}

/** @param {{ curl: string }} props */
function FirstPlant({ curl }) {
  return html`<section class="first">
    <h2>This store is empty. Send the first plant</h2>
    <ol>
      <li>Create a token on the screen <a href="#tokens">Tokens</a>, and copy it.</li>
      <li>Replace <code>${'<TOKEN>'}</code> in this command with it, and run the command:<pre>${curl}</pre><${CopyButton} text=${curl} label="Copy the command" /></li>
      <li>The plots below show the plant within a second or two. It is then on disk.</li>
    </ol>
  </section>`;
}

/**
 * @typedef {import('./plot.js').Line} Line
 * @param {{ title: string, unit: string, lines: readonly Line[], height: number, samples: Samples,
 *   seconds: number[], cursor: number | undefined,
 *   onCursor: (index: number | undefined) => void }} props
 */
function Panel({ title, unit, lines, height, samples, seconds, cursor, onCursor }) {
  const values = lines.map(({ name }) => seconds.map(second => samples.get(second)?.[name] ?? null));
  const index = cursor !== undefined && cursor < seconds.length ? cursor : seconds.length - 1;
  return html`<section class="panel">
    <h2>${title}</h2>
    <dl class="values">${lines.map(
      (line, each) => html`<div>
        <dt><span class=${`swatch ${line.name}`}></span>${line.label}</dt>
        <dd><strong>${numberText(values[each]?.[index])}</strong> <span class="note">${unit}</span></dd>
      </div>`,
    )}</dl>
    <${Plot} title=${title} seconds=${seconds} lines=${lines} values=${values} height=${height} onCursor=${onCursor} />
  </section>`;
}
