// The screen Now: the readiness of the service, and plots of the last 24 hours.
import { numberText, Problem } from './display.js';
import { Plot, Swatch, timeText } from './plot.js';
import { html, useMemo, useState } from './preact.js';
import { request, useLoad } from './requests.js';

const INTERVAL_MS = 1_000;
const RANGES = { '5 min': 300, '15 min': 900, '1 h': 3_600, '6 h': 21_600, '24 h': 86_400 };
const SHORT_SAMPLES_SECONDS = 960;
const ZOOM_SECONDS_MIN = 30;
/** For users who prefer reduced motion: the plots do not move every second. */
const REDUCED_MOTION_INTERVAL_SECONDS = 15;
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

/** @type {{ title: string, unit: string, height?: number, lines?: import('./plot.js').Line[] }[]} */
const PANELS = [
  {
    title: 'Plants per second',
    unit: 'per second',
    height: 280,
    lines: [
      { name: 'created', label: 'created', look: 0 },
      { name: 'revised', label: 'revised', look: 1 },
      { name: 'unchanged', label: 'unchanged', look: 2 },
    ],
  },
  { title: 'Errors per second', unit: 'per second' },
  {
    title: 'Response time',
    unit: 'ms',
    lines: [
      { name: 'p50', label: 'p50', look: 0 },
      { name: 'p99', label: 'p99', look: 1 },
    ],
  },
  { title: 'Plants in flight', unit: 'plants', lines: [{ name: 'inFlight', label: 'at the end', look: 1 }] },
  { title: 'Batch size', unit: 'plants', lines: [{ name: 'batchPlants', label: 'mean', look: 1 }] },
  { title: 'Commit time', unit: 'ms', lines: [{ name: 'commitMs', label: 'mean', look: 1 }] },
];

/**
 * What the page has and shows. It outlives the screen, a lost connection and the service.
 *
 * @typedef {Map<number, Record<string, number | null>>} Samples by the second of their end
 */
const rings = /** @type {Record<number, Samples>} */ ({ 1: new Map(), 10: new Map() });
const marks = /** @type {Map<string, import('./plot.js').Mark>} */ (new Map());
/** Errors by number and name. Each has the same color while the page is open. */
const errors = /** @type {Set<string>} */ (new Set());
let newest = 0;
let keptView = {
  span: 900,
  zoom: /** @type {[from: number, to: number] | undefined} */ (undefined),
  hidden: /** @type {string[]} */ ([]),
};

async function load() {
  const body = await request(`now?after=${newest}`);
  newest = body.newest;
  for (const { interval, from, to, values } of body.rings) {
    const samples = rings[interval] ?? new Map();
    for (let second = from; second <= to; second += interval)
      samples.set(second, valuesAt(values, (second - from) / interval));
    const oldest = newest - (interval === 1 ? SHORT_SAMPLES_SECONDS : RANGES['24 h']);
    // Seconds after the newest were before the clock was set back.
    for (const second of samples.keys()) if (second < oldest || second > newest) samples.delete(second);
    for (const name of Object.keys(values)) if (/^\d/.test(name)) errors.add(name);
  }
  for (const mark of body.marks) marks.set(`${mark.at} ${mark.text}`, mark);
  return body;
}

/**
 * @param {Record<string, (number | null)[]>} columns
 * @param {number} index
 */
function valuesAt(columns, index) {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[index] ?? null]));
}

/** @param {{ isLost: boolean }} props while the connection is lost, the readiness is unknown */
export function Now({ isLost }) {
  const [view, setView] = useState(keptView);
  const [cursor, setCursor] = useState(/** @type {number | undefined} */ (undefined));
  const { content, error } = useLoad(load, INTERVAL_MS);
  const change = (/** @type {Partial<typeof view>} */ part) => {
    keptView = { ...keptView, ...part };
    setView(keptView);
  };
  const end = newest - (newest % (reducedMotion.matches ? REDUCED_MOTION_INTERVAL_SECONDS : 1));
  const [from, to] = view.zoom ?? [end - view.span, end];
  const interval = from >= newest - SHORT_SAMPLES_SECONDS ? 1 : 10;
  const [first, last] = [Math.ceil(from / interval), Math.floor(to / interval)];
  const axis = useMemo(() => readAxis(first, last, interval), [first, last, interval]);
  if (content === undefined) return html`<${Problem} what="Not loaded" error=${error} />`;
  const index = (cursor ?? last * interval) / interval - first;
  const onZoom = (/** @type {number} */ from, /** @type {number} */ to) => {
    if (from === undefined) change({ zoom: undefined });
    else if (to - from >= ZOOM_SECONDS_MIN) change({ zoom: [from, to] });
  };
  const onToggle = (/** @type {string} */ name) => {
    const { hidden } = view;
    change({ hidden: hidden.includes(name) ? hidden.filter(each => each !== name) : [...hidden, name] });
  };
  return html`
    ${isLost ? null : html`<${Readiness} readiness=${content.readiness} />`}
    <${Problem} what="Not updated" error=${error} />
    <div class="links" role="group" aria-label="Time shown">${Object.entries(RANGES).map(
      ([label, span]) =>
        html`<button type="button" aria-pressed=${view.zoom === undefined && view.span === span} onClick=${() => change({ span, zoom: undefined })}>${label}</button>`,
    )}</div>
    <p class="note">Values of the ${interval === 1 ? 'second' : '10 seconds'} until ${timeText(first * interval + index * interval)}. ${axis.marks.map(({ at, text }) => `Mark: ${text} at ${timeText(at)}. `)}Drag over a plot to see a part, and double-click it to see all.</p>
    <div class="panels">${PANELS.map(panel => {
      const lines = panel.lines ?? axis.errorLines;
      return html`<${Panel} key=${panel.title} ...${{ ...panel, lines, axis, index, cursor, hidden: view.hidden, onCursor: setCursor, onZoom, onToggle }} />`;
    })}</div>`;
}

/**
 * A second without a sample stays in the axis: the service did not run then.
 *
 * @param {number} first in intervals since 1970, as `last`
 * @param {number} last
 * @param {number} interval
 */
function readAxis(first, last, interval) {
  const seconds = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * interval);
  const samples = seconds.map(second => rings[interval]?.get(second));
  const errorLines = [...errors]
    .map((name, index) => ({ name, label: name, look: index + 3 }))
    .filter(({ name }) => samples.some(sample => sample?.[name]));
  const isShown = (/** @type {{ at: number }} */ { at }) => at >= first * interval && at <= last * interval;
  return { seconds, samples, errorLines, marks: [...marks.values()].filter(isShown) };
}

/**
 * @typedef {{ name: string, ok: boolean, detail: string }} Check
 * @param {{ readiness: { status: string, checks: Check[] } }} props
 */
function Readiness({ readiness: { status, checks } }) {
  const failing = checks.filter(({ ok }) => !ok);
  const [state, text] =
    status !== 'ready'
      ? ['fault', 'Not ready: plants cannot be stored.']
      : failing.length > 0
        ? ['warning', 'Ready: plants can be stored, but a check fails.']
        : ['good', 'Ready: plants can be stored. All checks pass.'];
  return html`<div class="verdict" data-state=${state} role="status">
    <p><strong>${text}</strong></p>
    ${failing.map(({ name, detail }) => html`<p>Check <code>${name}</code> fails: ${detail}.</p>`)}
  </div>`;
}

/**
 * @param {{ title: string, unit: string, lines: import('./plot.js').Line[], height?: number,
 *   axis: ReturnType<typeof readAxis>, index: number, cursor: number | undefined, hidden: string[],
 *   onCursor: (second: number | undefined) => void, onZoom: () => void, onToggle: (name: string) => void }} props
 */
function Panel({ title, unit, lines, height = 150, axis, index, hidden, onToggle, ...rest }) {
  const visible = lines.filter(({ name }) => !hidden.includes(name));
  const read = useMemo(
    () => visible.map(({ name }) => axis.samples.map(sample => valueIn(sample, name))),
    [axis, visible.length],
  );
  const shown = (/** @type {string} */ name) => numberText(valueIn(axis.samples[index], name));
  const text = visible.map(({ name, label }) => `${label} ${shown(name)} ${unit}`).join(', ');
  return html`<section class="panel">
    <h2>${title}</h2>
    <div class="values">${lines.map(
      ({ name, label, look }) => html`<div key=${name}>
        <button type="button" class="legend" aria-pressed=${!hidden.includes(name)} onClick=${() => onToggle(name)}><${Swatch} look=${look} />${label}</button>
        <div><strong>${shown(name)}</strong> <span class="note">${unit}</span></div>
      </div>`,
    )}</div>
    <${Plot} key=${visible.map(({ name }) => name).join()} ...${{ ...rest, title, unit, height, lines: visible, values: read, seconds: axis.seconds, marks: axis.marks, text: `${timeText(axis.seconds[index] ?? 0)}: ${text}` }} />
  </section>`;
}

/**
 * @param {Record<string, number | null> | undefined} sample
 * @param {string} name
 */
function valueIn(sample, name) {
  if (sample === undefined) return null;
  // The service leaves out what is 0.
  const value = sample[name];
  return value === undefined ? 0 : value;
}
