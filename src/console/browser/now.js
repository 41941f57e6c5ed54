// The screen Now: what an operator asks first, and plots of the last 15 minutes.
import { Facts, numberText, Problem } from './display.js';
import { Plot, timeText } from './plot.js';
import { html, useRef, useState } from './preact.js';
import { request, useLoad } from './requests.js';

const INTERVAL_MS = 1_000;
const HISTORY_SECONDS = 900;
/** A shorter time axis would draw the first seconds as a few long lines. */
const SHORTEST_AXIS_SECONDS = 60;

/**
 * Lines differ in color and in pattern. Their swatches in app.css have the same.
 *
 * @type {{ title: string, unit: string, height?: number, lines: import('./plot.js').Line[] }[]}
 */
const PANELS = [
  {
    title: 'Plants per second',
    unit: 'per second',
    height: 280,
    lines: [
      { name: 'created', label: 'created' },
      { name: 'revised', label: 'revised', dash: [8, 4] },
      { name: 'unchanged', label: 'unchanged', dash: [2, 3] },
      { name: 'failed', label: 'other responses', dash: [12, 3, 3, 3] },
    ],
  },
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

/** @param {{ isLost: boolean }} props while the connection is lost, the values are old */
export function Now({ isLost }) {
  const { current: samples } = useRef(/** @type {Samples} */ (new Map()));
  const [cursor, setCursor] = useState(/** @type {number | undefined} */ (undefined));
  const { content, error } = useLoad(async () => {
    const body = await request(`now?after=${Math.max(0, ...samples.keys())}`);
    for (const [index, sample] of body.samples.entries()) samples.set(body.from + index, sample);
    return { ...body, seconds: axisOf(samples) };
  }, INTERVAL_MS);
  if (content === undefined) return html`<${Problem} what="Not loaded" error=${error} />`;
  const { seconds, facts } = content;
  const index = cursor ?? seconds.length - 1;
  const isLive = seconds.length === 0 || (cursor === undefined && !isLost);
  return html`
    <${Facts} rows=${facts} />
    <${Problem} what="Not updated" error=${error} />
    <p class="note">Values ${isLive ? 'of the last second' : `at ${timeText(seconds[index])}`}</p>
    <div class="panels">${PANELS.map(panel => html`<${Panel} key=${panel.title} ...${panel} samples=${samples} seconds=${seconds} index=${index} onCursor=${setCursor} />`)}</div>`;
}

/**
 * Forgets old samples. A second without a sample stays in the axis: the service did not run then.
 *
 * @param {Samples} samples
 */
function axisOf(samples) {
  if (samples.size === 0) return [];
  const newest = Math.max(...samples.keys());
  for (const second of samples.keys()) if (second <= newest - HISTORY_SECONDS) samples.delete(second);
  const first = Math.min(newest - SHORTEST_AXIS_SECONDS + 1, ...samples.keys());
  return Array.from({ length: newest - first + 1 }, (_, index) => first + index);
}

/**
 * @param {{ title: string, unit: string, lines: readonly import('./plot.js').Line[],
 *   height?: number, samples: Samples, seconds: number[], index: number,
 *   onCursor: (index: number | undefined) => void }} props
 */
function Panel({ title, unit, lines, height = 150, samples, seconds, index, onCursor }) {
  const values = lines.map(({ name }) => seconds.map(second => samples.get(second)?.[name] ?? null));
  return html`<section class="panel">
    <h2>${title}</h2>
    <dl class="values">${lines.map(
      ({ name, label }, line) => html`<div>
        <dt><span class=${`swatch ${name}`}></span>${label}</dt>
        <dd><strong>${numberText(values[line]?.[index])}</strong> <span class="note">${unit}</span></dd>
      </div>`,
    )}</dl>
    <${Plot} title=${title} seconds=${seconds} lines=${lines} values=${values} height=${height} onCursor=${onCursor} />
  </section>`;
}
