// The screen Now: the most important facts, and plots of the last 24 hours.
import { clientText, Facts, numberText, Table } from './display.js';
import { Plot, Swatch, timeText } from './plot.js';
import { html, useMemo, useState } from './preact.js';
import { request, useLoad } from './requests.js';

const INTERVAL_MS = 1_000;
const RANGES = { '5 min': 300, '15 min': 900, '1 h': 3_600, '6 h': 21_600, '24 h': 86_400 };
/** For this time, the page stores samples of one second. */
const SECONDS_MAX = 920;
/** A zoom to fewer samples has no effect. */
const ZOOM_SAMPLES_MIN = 10;
/** Plots move every second, but rarely for users who prefer reduced motion. */
const MOVE_SECONDS = matchMedia('(prefers-reduced-motion: reduce)').matches ? 15 : 1;
/** The first line style for errors. Earlier styles are for lines with fixed names. */
const FIRST_ERROR_STYLE = 3;

/** The plots. A name is that of a column in the response. Without names, all errors are shown. */
const PANELS = [
  { title: 'Plants per second', unit: 'per second', height: 280, names: ['created', 'revised', 'unchanged'] },
  { title: 'Errors per second', unit: 'per second', height: 150 },
  { title: 'Response time', unit: 'ms', height: 150, names: ['p50', 'p99'] },
  { title: 'Plants in flight', unit: 'plants', height: 150, names: ['in flight'] },
  { title: 'Batch size', unit: 'plants', height: 150, names: ['mean batch'] },
  { title: 'Commit time', unit: 'ms', height: 150, names: ['mean commit'] },
];

/**
 * @typedef {{ label: string, plants: number, errors: number }} Sender with rates per second
 * @type {Record<string, (sender: Sender) => unknown>}
 */
const SENDER_COLUMNS = {
  Token: ({ label }) => clientText(label),
  'Plants per second': ({ plants }) => numberText(plants),
  'Errors per second': ({ errors }) => numberText(errors),
};

// Samples stay in the page when the user changes the screen, and when the service restarts.

/**
 * Samples by interval and second.
 *
 * @type {Record<number, Map<number, import('./plot.js').Sample>>}
 */
const rings = { 1: new Map(), 10: new Map() };
const marks = /** @type {Map<number, string>} by second */ (new Map());
/** Errors by number and name. Each has the same color while the page is open. */
const errors = /** @type {Set<string>} */ (new Set());
const hidden = /** @type {Set<string>} */ (new Set());
const view = { span: 900, zoom: /** @type {[from: number, to: number] | undefined} */ (undefined) };
let newest = 0;

async function load() {
  const body = await request(`now?after=${newest}`);
  newest = body.newest;
  for (const { interval, from, count, columns } of body.rings) {
    const samples = rings[interval] ?? new Map();
    // The service omits columns that are always 0.
    for (let index = 0; index < count; index++)
      samples.set(from + index * interval, (/** @type {string} */ name) =>
        name in columns ? columns[name][index] : 0,
      );
    const oldest = newest - (interval === 1 ? SECONDS_MAX : RANGES['24 h']);
    // The clock of the service may have been set back.
    for (const second of samples.keys()) if (second < oldest || second > newest) samples.delete(second);
    for (const name of Object.keys(columns)) if (/^\d/.test(name)) errors.add(name);
  }
  marks.set(Math.floor(body.startedAt / 1000), 'start');
  for (const { command, endedAt } of body.runs) marks.set(Math.floor(endedAt / 1000), command);
  return body;
}

export function Now() {
  const [, redraw] = useState(0);
  const [cursor, setCursor] = useState(/** @type {number | undefined} */ (undefined));
  const { content, problem } = useLoad(load, INTERVAL_MS);
  const end = newest - (newest % MOVE_SECONDS);
  const [from, to] = view.zoom ?? [end - view.span, end];
  const interval = from >= newest - SECONDS_MAX ? 1 : 10;
  const [first, last] = [Math.ceil(from / interval), Math.floor(to / interval)];
  const axis = useMemo(() => readAxis(first, last, interval), [first, last, interval]);
  if (content === undefined) return problem;
  const change = (/** @type {Partial<typeof view>} */ part) => {
    Object.assign(view, part);
    redraw(previous => previous + 1);
  };
  const onZoom = (/** @type {typeof view.zoom} */ zoom) => {
    if (zoom === undefined || zoom[1] - zoom[0] >= ZOOM_SAMPLES_MIN * interval) change({ zoom });
  };
  const onToggle = (/** @type {string} */ name) => {
    if (!hidden.delete(name)) hidden.add(name);
    change({});
  };
  // A cursor whose time has left the axis stays at the first second.
  const index = Math.max(0, Math.min(Math.round((cursor ?? end) / interval), last) - first);
  const time = timeText(axis.seconds[index] ?? end);
  return html`
    <${Facts} rows=${content.facts} />
    ${problem}
    <div class="links" role="group" aria-label="Time shown">${Object.entries(RANGES).map(([label, span]) => {
      const isOn = view.zoom === undefined && view.span === span;
      return html`<button type="button" class=${isOn ? 'main' : ''} aria-pressed=${isOn} onClick=${() => change({ span, zoom: undefined })}>${label}</button>`;
    })}</div>
    <p class="note">
      Values of the ${interval === 1 ? 'second' : '10 seconds'} until ${time}.${' '}
      ${axis.marks.map(([at, text]) => `Mark: ${text} at ${timeText(at)}. `)}
      To see a part, drag over a plot; to go back, double-click it.
    </p>
    <div class="panels">
      ${PANELS.map(
        ({ names, ...panel }) => html`<${Panel}
          key=${panel.title}
          ...${panel}
          ...${axis}
          lines=${names?.map((name, lineStyle) => ({ name, lineStyle })) ?? axis.errorLines}
          time=${time}
          index=${index}
          isHeld=${cursor !== undefined}
          onCursor=${setCursor}
          onZoom=${onZoom}
          onToggle=${onToggle}
        />`,
      )}
    </div>
    <h2>Busiest tokens of the last minute</h2>
    ${
      content.busiest.length === 0
        ? html`<p class="note">No token was used.</p>`
        : html`<${Table} name="Busiest tokens" columns=${SENDER_COLUMNS} rows=${content.busiest} />`
    }`;
}

/**
 * Reads the samples of a time. Those of seconds in which the service did not run are undefined.
 *
 * @param {number} first in intervals since 1970, as is `last`
 * @param {number} last
 * @param {number} interval
 */
function readAxis(first, last, interval) {
  const seconds = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * interval);
  const samples = seconds.map(second => rings[interval]?.get(second));
  const errorLines = [...errors]
    .map((name, index) => ({ name, lineStyle: index + FIRST_ERROR_STYLE }))
    .filter(({ name }) => samples.some(sample => sample?.(name)));
  const isShown = (/** @type {number} */ at) => at >= first * interval && at <= last * interval;
  return { seconds, samples, errorLines, marks: [...marks].filter(([at]) => isShown(at)) };
}

/** @param {import('./plot.js').PlotProps & { time: string, onToggle: (name: string) => void }} props */
function Panel({ lines, time, onToggle, ...props }) {
  const visible = lines.filter(({ name }) => !hidden.has(name));
  const valueText = (/** @type {string} */ name) => numberText(props.samples[props.index]?.(name));
  const text = `${time}: ${visible.map(({ name }) => `${name} ${valueText(name)}`).join(', ')} ${props.unit}`;
  return html`<section class="panel">
    <h2>${props.title}</h2>
    <div class="values">${lines.length === 0 && html`<p class="note">none in this time</p>`}${lines.map(
      ({ name, lineStyle }) =>
        html`<div key=${name}>
          <button type="button" aria-pressed=${!hidden.has(name)} onClick=${() => onToggle(name)}>
            <${Swatch} lineStyle=${lineStyle} /> ${name}
          </button>${' '}
          <strong>${valueText(name)}</strong> <span class="note">${props.unit}</span>
        </div>`,
    )}</div>
    <${Plot} key=${visible.map(({ name }) => name).join()} ...${{ ...props, lines: visible, text }} />
  </section>`;
}
