// The screen Now: the most important facts, and plots of the last 24 hours.
import { clientText, Facts, numberText, Table } from './display.js';
import { Plot, Swatch, timeText } from './plot.js';
import { html, useMemo, useState } from './preact.js';
import { request, useLoad } from './requests.js';
import { Statistics } from './statistics.js';

const INTERVAL_MS = 1_000;
const RANGES = { '5 min': 300, '15 min': 900, '1 h': 3_600, '6 h': 21_600, '24 h': 86_400 };
/** A range begins at the oldest sample, but is at least as long as this. */
const RANGE_MIN_SECONDS = 30;
/** For this time, the page stores samples of one second. */
const SECONDS_MAX = 920;
/** A long range merges so many samples into one, so that its lines stay readable. */
const MERGED_SAMPLES = [1, 6, 24];
const POINTS_MAX = 920;
/** Of merged samples, these values are the highest and not the mean, so that no peak disappears. */
const PEAKS = new Set(['p99']);
/** A zoom to fewer samples has no effect. */
const ZOOM_SAMPLES_MIN = 10;
/** Plots move every second, but rarely for users who prefer reduced motion. */
const MOVE_SECONDS = matchMedia('(prefers-reduced-motion: reduce)').matches ? 15 : 1;
const PLOT_HEIGHT = 190;
/** So many errors have lines of their own: those with the most requests in the time shown. */
const ERROR_LINES_MAX = 5;
const OTHERS = { name: 'others', lineStyle: 2 };
/**
 * The line styles of errors, so that an error always looks the same. Those of the service are of
 * the color of faults.
 *
 * @type {Record<string, number>}
 */
const ERROR_STYLES = {
  40000: 12,
  40001: 1,
  40002: 0,
  40003: 16,
  40101: 19,
  40102: 4,
  40401: 10,
  40501: 5,
  40801: 7,
  41201: 6,
  41301: 9,
  41501: 15,
  41502: 11,
  42901: 14,
  43101: 17,
  50001: 18,
  50301: 13,
  50302: 8,
  50303: 3,
  50304: 3,
};

/** The plots. A name is that of a column in the response. Without names, all errors are shown. */
const PANELS = [
  { title: 'Plants per second', unit: '', names: ['created', 'revised', 'unchanged'] },
  { title: 'Errors per second', unit: '' },
  { title: 'Response and commit time', unit: 'ms', names: ['p50', 'p99', 'mean commit'] },
  { title: 'Plants in flight and per batch', unit: 'plants', names: ['in flight', 'mean batch'] },
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
const SENDER_RATES = ['Plants per second', 'Errors per second'];

// Samples stay in the page when the user changes the screen, and when the service restarts.

/**
 * Samples by interval and second.
 *
 * @type {Record<number, Map<number, import('./plot.js').Sample>>}
 */
const rings = { 1: new Map(), 10: new Map() };
const marks = /** @type {Map<number, string>} by second */ (new Map());
/** Errors by number and name. */
const errors = /** @type {Set<string>} */ (new Set());
const hidden = /** @type {Set<string>} */ (new Set());
const view = {
  span: 900,
  isLogarithmic: false,
  zoom: /** @type {[from: number, to: number] | undefined} */ (undefined),
};
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
  // The first second begins before its sample, so that the mark of a start is shown, too.
  const firstSecond = firstOf(rings[1]) - 1;
  const firstTen = firstOf(rings[10]);
  const oldest = Math.min(end - RANGE_MIN_SECONDS, firstSecond, firstTen);
  const [from, to] = view.zoom ?? [Math.max(end - view.span, oldest), end];
  // After a restart, only the samples of ten seconds reach back.
  const sampled = from >= firstSecond || firstTen >= firstSecond ? 1 : 10;
  const interval =
    sampled * (MERGED_SAMPLES.find(count => (to - from) / sampled / count <= POINTS_MAX) ?? 24);
  const [first, last] = [Math.ceil(from / interval), Math.floor(to / interval)];
  const axis = useMemo(() => readAxis(first, last, interval, sampled), [first, last, interval, sampled]);
  if (content === undefined) return problem;
  const change = (/** @type {Partial<typeof view>} */ part) => {
    Object.assign(view, part);
    redraw(previous => previous + 1);
  };
  const onZoom = (/** @type {typeof view.zoom} */ zoom) => {
    if (zoom === undefined || zoom[1] - zoom[0] >= ZOOM_SAMPLES_MIN * sampled) change({ zoom });
  };
  const onToggle = (/** @type {string} */ name) => {
    if (!hidden.delete(name)) hidden.add(name);
    change({});
  };
  // A cursor whose time has left the axis stays at the first second.
  const index = Math.max(0, Math.min(Math.round((cursor ?? end) / interval), last) - first);
  const time = timeText(axis.seconds[index] ?? end);
  const { statistics, total, facts, busiest } = content;
  return html`
    <${Statistics} seconds=${rings[1]} tens=${rings[10]} newest=${newest} errors=${errors} total=${total} ...${statistics} />
    <${Facts} rows=${facts} />
    ${problem}
    <div class="links">
      <div class="choice" role="group" aria-label="Time shown">${Object.entries(RANGES).map(
        ([label, span]) => {
          const isOn = view.zoom === undefined && view.span === span;
          return html`<button type="button" aria-pressed=${isOn} onClick=${() => change({ span, zoom: undefined })}>${label}</button>`;
        },
      )}</div>
      <div class="choice" role="group" aria-label="Scale">${['linear', 'log'].map(label => {
        const isLogarithmic = label === 'log';
        return html`<button type="button" aria-pressed=${view.isLogarithmic === isLogarithmic} onClick=${() => change({ isLogarithmic })}>${label}</button>`;
      })}</div>
      ${view.zoom && html`<button type="button" onClick=${() => onZoom(undefined)}>Show all again</button>`}
      <span class="note">${cursor === undefined ? 'Newest values' : 'Values'}: ${time}${interval === 1 ? '' : `, means of ${interval < 60 ? `${interval} s` : `${interval / 60} min`}`}</span>
    </div>
    <div class="panels">
      ${PANELS.map(
        ({ names, ...panel }) => html`<${Panel}
          key=${panel.title}
          ...${panel}
          ...${axis}
          height=${PLOT_HEIGHT}
          lines=${names?.map((name, lineStyle) => ({ name, lineStyle })) ?? axis.errorLines}
          time=${time}
          index=${index}
          isHeld=${cursor !== undefined}
          isLogarithmic=${view.isLogarithmic}
          onCursor=${setCursor}
          onZoom=${onZoom}
          onToggle=${onToggle}
        />`,
      )}
    </div>
    <p class="note">
      ${axis.marks.map(([at, text]) => `Mark: ${text} at ${timeText(at)}. `)}
      A click on a name hides its line. To see a part, drag over a plot.
    </p>
    <h2>Busiest tokens of the last minute</h2>
    ${
      busiest.length === 0
        ? html`<p class="note">No token was used. A client needs the address of this service and a <a href="#tokens">token</a>.</p>`
        : html`<${Table} name="Busiest tokens" numbers=${SENDER_RATES} columns=${SENDER_COLUMNS} rows=${busiest} />`
    }`;
}

/** @param {Map<number, unknown> | undefined} samples by second, the oldest first */
function firstOf(samples) {
  const [first = Infinity] = samples?.keys() ?? [];
  return first;
}

/**
 * Reads the samples of a time. Those of seconds in which the service did not run are undefined.
 *
 * @param {number} first in intervals since 1970, as is `last`
 * @param {number} last
 * @param {number} interval
 * @param {number} sampled the interval of the samples, which is a part of `interval`
 */
function readAxis(first, last, interval, sampled) {
  const seconds = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * interval);
  const samples = seconds.map(second => mergedSample(second, interval, sampled));
  const isShown = (/** @type {number} */ at) => at >= first * interval && at <= last * interval;
  return { seconds, ...withErrorLines(samples), marks: [...marks].filter(([at]) => isShown(at)) };
}

/**
 * The lines of the errors that the samples have. The rarest share a line, whose values are added to
 * the samples.
 *
 * @param {(import('./plot.js').Sample | undefined)[]} samples
 */
function withErrorLines(samples) {
  const sums = [...errors].map(name => ({
    name,
    sum: samples.reduce((sum, sample) => sum + (sample?.(name) ?? 0), 0),
  }));
  const found = sums.filter(({ sum }) => sum > 0).toSorted((a, b) => b.sum - a.sum);
  // A single error needs no shared line.
  const shown = found.slice(0, found.length > ERROR_LINES_MAX + 1 ? ERROR_LINES_MAX : undefined);
  const folded = found.slice(shown.length).map(({ name }) => name);
  // In the order of their numbers, so that they change places rarely.
  const lines = shown
    .map(({ name }) => ({ name, lineStyle: ERROR_STYLES[name.slice(0, 5)] ?? OTHERS.lineStyle }))
    .toSorted((a, b) => a.name.localeCompare(b.name));
  if (folded.length === 0) return { samples, errorLines: lines };
  const withOthers = samples.map(
    sample =>
      sample &&
      ((/** @type {string} */ name) =>
        name === OTHERS.name ? folded.reduce((sum, each) => sum + (sample(each) ?? 0), 0) : sample(name)),
  );
  return { samples: withOthers, errorLines: [...lines, OTHERS] };
}

/**
 * Merges the samples of an interval.
 *
 * @param {number} end
 * @param {number} interval
 * @param {number} sampled
 * @returns {import('./plot.js').Sample | undefined}
 */
function mergedSample(end, interval, sampled) {
  const ring = rings[sampled];
  if (interval === sampled) return ring?.get(end);
  const samples = Array.from({ length: interval / sampled }, (_, index) => ring?.get(end - index * sampled));
  const found = samples.filter(sample => sample !== undefined);
  if (found.length === 0) return undefined;
  return name => {
    const values = found.map(sample => sample(name)).filter(value => value !== null);
    if (values.length === 0) return null;
    return PEAKS.has(name)
      ? Math.max(...values)
      : values.reduce((sum, value) => sum + value, 0) / values.length;
  };
}

/** @param {import('./plot.js').PlotProps & { time: string, onToggle: (name: string) => void }} props */
function Panel({ lines, time, onToggle, ...props }) {
  const visible = lines.filter(({ name }) => !hidden.has(name));
  const valueText = (/** @type {string} */ name) => numberText(props.samples[props.index]?.(name));
  const text = `${time}: ${visible.map(({ name }) => `${name} ${valueText(name)}`).join(', ')} ${props.unit}`;
  return html`<section class="panel">
    <h2>${props.title} ${props.unit && html`<span class="note">${props.unit}</span>`}</h2>
    <div class="values">
      ${lines.length === 0 && html`<span class="note">none in this time</span>`}
      ${lines.map(
        ({ name, lineStyle }) =>
          html`<span key=${name}>
            <button type="button" aria-pressed=${!hidden.has(name)} onClick=${() => onToggle(name)}>
              <${Swatch} lineStyle=${lineStyle} /> ${name}
            </button>
            <strong>${valueText(name)}</strong>
          </span>`,
      )}
    </div>
    <${Plot}
      key=${`${visible.map(({ name }) => name).join()} ${props.isLogarithmic}`}
      ...${{ ...props, lines: visible, text }}
    />
  </section>`;
}
