// The screen Now: the most important facts, and plots of the last 24 hours.
import { COUNT, clientText, Facts, numberText, shortText, Table } from './display.js';
import { ERROR_WORDS } from './error-words.js';
import { minuteText, Plot, Swatch, timeText } from './plot.js';
import { html, useMemo, useState } from './preact.js';
import { request, useLoad } from './requests.js';
import { midnightBefore, SpeedStatistics, Statistics, samplesSince } from './statistics.js';

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
/** So many errors have bars of their own: those with the most requests in the time shown. */
const ERROR_BARS_MAX = 5;
const OTHERS = 'others';
/** Colors of bars, for errors whose own color another one has. */
const BAR_COLORS = ['sky', 'ochre', 'leaf', 'muted', 'ink', 'brick'];
/** The width of a bar in seconds. Each is a multiple of ten seconds. */
const BAR_SECONDS = [10, 60, 300, 600, 1_800];
const BARS_MAX = 60;

const PLANTS_PANEL = {
  title: 'Plants per second',
  unit: '',
  lines: linesOf('created', 'revised', 'unchanged'),
};
const REJECTED_TITLE = 'Rejected requests';
const TECHNICAL_PANELS = [
  { title: 'Response and commit time', unit: 'ms', lines: linesOf('p50', 'p99', 'mean commit') },
  { title: 'Plants in flight and per batch', unit: 'plants', lines: linesOf('in flight', 'mean batch') },
];

/** Lines of a plot. A name is that of a column in the response. @param {...string} names */
function linesOf(...names) {
  return names.map((name, lineStyle) => ({ name, lineStyle }));
}

/**
 * @typedef {{ label: string, plants: number, errors: number }} Sender with counts of the last minute
 * @type {Record<string, (sender: Sender) => unknown>}
 */
const SENDER_COLUMNS = {
  Token: ({ label }) => clientText(label),
  Plants: ({ plants }) => shortText(Math.round(plants)),
  Rejected: ({ errors }) => shortText(Math.round(errors)),
};
const SENDER_COUNTS = ['Plants', 'Rejected'];
/** A token moves up only if it sends so many times as much as the one above it. */
const ORDER_SHARE = 1.25;
/** Labels in the order that is shown. */
let senderOrder = /** @type {string[]} */ ([]);

// Samples stay in the page when the user changes the screen, and when the service restarts.

/** Samples of one second and of ten seconds, by second. */
const seconds = /** @type {Map<number, import('./plot.js').Sample>} */ (new Map());
const tens = /** @type {Map<number, import('./plot.js').Sample>} */ (new Map());
/** By interval. @type {Record<number, typeof seconds>} */
const rings = { 1: seconds, 10: tens };
const marks = /** @type {Map<number, string>} by second */ (new Map());
/** Errors by number and name. */
const errors = /** @type {Set<string>} */ (new Set());
const hidden = /** @type {Set<string>} */ (new Set());
const view = {
  span: 900,
  isLogarithmic: false,
  isTechnical: false,
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
  const { content, problem, isLost } = useLoad(load, INTERVAL_MS);
  const end = newest - (newest % MOVE_SECONDS);
  // The first second begins before its sample, so that the mark of a start is shown, too.
  const firstSecond = firstOf(seconds) - 1;
  const firstTen = firstOf(tens);
  const oldest = Math.min(end - RANGE_MIN_SECONDS, firstSecond, firstTen);
  const [from, to] = view.zoom ?? [Math.max(end - view.span, oldest), end];
  // After a restart, only the samples of ten seconds reach back.
  const sampled = from >= firstSecond || firstTen >= firstSecond ? 1 : 10;
  const interval =
    sampled * (MERGED_SAMPLES.find(count => (to - from) / sampled / count <= POINTS_MAX) ?? 24);
  const [first, last] = [Math.ceil(from / interval), Math.floor(to / interval)];
  const axis = useMemo(() => readAxis(first, last, interval, sampled), [first, last, interval, sampled]);
  const bars = useMemo(() => readBars(from, to), [from, to]);
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
  const recent = { seconds, tens, newest };
  const shared = {
    range: [first * interval, last * interval],
    height: PLOT_HEIGHT,
    marks: axis.marks,
    isHeld: cursor !== undefined,
    isLogarithmic: view.isLogarithmic,
    onCursor: setCursor,
    onZoom,
    onToggle,
  };
  const panelOf = (/** @type {typeof PLANTS_PANEL} */ panel) =>
    html`<${Panel} key=${panel.title} ...${panel} ...${axis} ...${shared} time=${time} index=${index} />`;
  const barIndex = Math.max(0, Math.min(bars.indexOf(cursor ?? end), bars.seconds.length - 1));
  const onFold = (/** @type {{ currentTarget: HTMLDetailsElement }} */ event) =>
    event.currentTarget.open !== view.isTechnical && change({ isTechnical: event.currentTarget.open });
  senderOrder = steadyOrder(busiest, senderOrder);
  const senders = senderOrder.map(label =>
    busiest.find((/** @type {Sender} */ each) => each.label === label),
  );
  return html`<div data-lost=${isLost || undefined}>
    <${Statistics} ...${recent} errors=${errors} total=${total} ...${statistics} />
    <${Facts} rows=${[...facts, todayFact(oldest)]} />
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
        return html`<button type="button" aria-pressed=${view.isLogarithmic === isLogarithmic} onClick=${() => change({ isLogarithmic })}>${isLogarithmic ? 'log: small values stay visible' : label}</button>`;
      })}</div>
      ${view.zoom && html`<button type="button" onClick=${() => onZoom(undefined)}>Show all again</button>`}
      <span class="note">
        ${view.zoom === undefined && oldest > end - view.span + RANGE_MIN_SECONDS && html`<strong>Data since ${minuteText(oldest)}.</strong>${' '}`}
        ${cursor === undefined ? 'Newest values' : 'Values'}: ${time}${interval === 1 ? '' : `, means of ${durationText(interval)}`}
      </span>
    </div>
    <div class="panels">
      ${panelOf(PLANTS_PANEL)}
      <${Panel}
        key=${REJECTED_TITLE}
        title=${REJECTED_TITLE}
        unit=${`in ${durationText(bars.barSeconds)}`}
        isStacked=${true}
        ...${bars}
        ...${shared}
        time=${`${timeText(bars.endOf(barIndex) - bars.barSeconds)} to ${timeText(bars.endOf(barIndex))}`}
        index=${barIndex}
      />
    </div>
    <p class="note">
      ${axis.marks.map(([at, text]) => `Mark: ${text} at ${timeText(at)}. `)}
      A click on a name hides it. To see a part, drag over a plot.
    </p>
    <h2>Busiest tokens of the last minute</h2>
    ${
      busiest.length === 0
        ? html`<p class="note">No token was used. A program that sends plants needs the address of this service and a <a href="#tokens">token</a>.</p>`
        : html`<div class="compact"><${Table} name="Busiest tokens" numbers=${SENDER_COUNTS} columns=${SENDER_COLUMNS} rows=${senders} /></div>`
    }
    <details class="fold" open=${view.isTechnical} onToggle=${onFold}>
      <summary>Technical: speed, response times, batches</summary>
      ${
        view.isTechnical &&
        html`<${SpeedStatistics} ...${recent} />
        <div class="panels">${TECHNICAL_PANELS.map(panelOf)}</div>`
      }
    </details>
  </div>`;
}

/** Since when the plants of today are counted. @param {number} oldest the second of the oldest sample */
function todayFact(oldest) {
  const midnight = midnightBefore(newest);
  const since = oldest > midnight ? minuteText(oldest) : 'midnight';
  return { label: 'Today', text: `what this service stored since ${since}` };
}

/** @param {number} seconds */
function durationText(seconds) {
  return seconds < 60 ? `${seconds} s` : seconds === 60 ? '1 min' : `${seconds / 60} min`;
}

/**
 * The labels by what they send, the busiest first. Small changes of a value move nothing.
 *
 * @param {Sender[]} senders
 * @param {string[]} before the order that is shown
 */
function steadyOrder(senders, before) {
  const sums = new Map(senders.map(({ label, plants, errors }) => [label, plants + errors]));
  const order = before.filter(label => sums.has(label));
  // A new token is at the end, and then moves up as all others.
  order.push(...senders.map(({ label }) => label).filter(label => !before.includes(label)));
  const sumOf = (/** @type {number} */ place) => sums.get(order[place] ?? '') ?? 0;
  for (let next = 1; next < order.length; next++)
    for (let place = next; place > 0 && sumOf(place) > sumOf(place - 1) * ORDER_SHARE; place--)
      order.splice(place - 1, 2, order[place] ?? '', order[place - 1] ?? '');
  return order;
}

/** @param {Map<number, unknown>} samples by second, the oldest first */
function firstOf(samples) {
  const [first = Infinity] = samples.keys();
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
  const times = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * interval);
  const samples = times.map(second => mergedSample(second, interval, sampled));
  const isShown = (/** @type {number} */ at) => at >= first * interval && at <= last * interval;
  return { seconds: times, samples, marks: [...marks].filter(([at]) => isShown(at)) };
}

/**
 * Counts the errors of a time in bars. The rarest errors share a color. The time of a bar is its
 * middle.
 *
 * @param {number} from in seconds since 1970, as is `to`
 * @param {number} to
 */
function readBars(from, to) {
  const barSeconds = BAR_SECONDS.find(each => (to - from) / each <= BARS_MAX) ?? 1_800;
  const first = Math.floor(from / barSeconds);
  const length = Math.max(1, Math.ceil(to / barSeconds) - first);
  const indexOf = (/** @type {number} */ second) => Math.ceil(second / barSeconds) - 1 - first;
  const endOf = (/** @type {number} */ index) => (first + index + 1) * barSeconds;
  const counts = new Map(
    [...errors].map(name => [name, /** @type {number[]} */ (new Array(length).fill(0))]),
  );
  const since = first * barSeconds;
  for (const { end, interval, sample } of samplesSince(seconds, tens, newest, since))
    for (const [name, column] of counts) {
      const index = indexOf(end);
      if (index < length) column[index] = (column[index] ?? 0) + (sample(name) ?? 0) * interval;
    }
  const { columns, lines } = withOthers(counts);
  const samples = Array.from(
    { length },
    (_, index) => (/** @type {string} */ name) => Math.round(columns.get(name)?.[index] ?? 0),
  );
  const middles = samples.map((_, index) => endOf(index) - barSeconds / 2);
  return { barSeconds, seconds: middles, samples, lines, indexOf, endOf };
}

/**
 * The errors that occurred, in the order of their numbers, so that they change places rarely. The
 * rarest are added to one.
 *
 * @param {Map<string, number[]>} counts
 */
function withOthers(counts) {
  const sums = [...counts].map(([name, column]) => ({ name, sum: column.reduce((a, b) => a + b, 0) }));
  const found = sums.filter(({ sum }) => sum > 0).toSorted((a, b) => b.sum - a.sum);
  // A single error needs no others.
  const shown = found.slice(0, found.length > ERROR_BARS_MAX + 1 ? ERROR_BARS_MAX : undefined);
  const folded = found.slice(shown.length).map(({ name }) => counts.get(name) ?? []);
  const names = shown.map(({ name }) => name).toSorted();
  const columns = new Map(names.map(name => [name, counts.get(name) ?? []]));
  if (folded.length > 0) {
    names.push(OTHERS);
    const [one = []] = folded;
    columns.set(
      OTHERS,
      one.map((_, index) => folded.reduce((sum, column) => sum + (column[index] ?? 0), 0)),
    );
  }
  const colors = new Set();
  const lines = names.map(name => {
    const number = name.slice(0, 5);
    const own = ERROR_WORDS[number];
    const color =
      [own?.color, ...BAR_COLORS].find(each => each !== undefined && !colors.has(each)) ?? 'muted';
    colors.add(color);
    return { name, color, title: own === undefined ? name : `${number} ${own.words}` };
  });
  return { columns, lines };
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
  const valueText = (/** @type {string} */ name) => {
    const value = props.samples[props.index]?.(name);
    return props.isStacked ? COUNT.format(value ?? 0) : numberText(value);
  };
  const values = visible.map(({ name, title = name }) => `${title} ${valueText(name)}`);
  const text = `${time}: ${values.join(', ')} ${props.unit}`;
  return html`<section class="panel" data-stacked=${props.isStacked}>
    <h2>${props.title} ${props.unit && html`<span class="note">${props.unit}</span>`}</h2>
    <div class="values">
      ${lines.length === 0 && html`<span class="note">none in this time</span>`}
      ${lines.map(
        ({ name, title = name, ...look }) =>
          html`<span key=${name}>
            <button type="button" aria-pressed=${!hidden.has(name)} onClick=${() => onToggle(name)}>
              <${Swatch} ...${look} /> ${title}
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
