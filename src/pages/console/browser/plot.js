// A plot over time. The list of values beside it is the text alternative.
import { numberText } from './display.js';
import { html, useEffect, useRef } from './preact.js';
import Plotter from './uplot.js';

const SECOND = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const MINUTE = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const DARK = matchMedia('(prefers-color-scheme: dark)');
const FONT_PX = 11;
const FONT = `${FONT_PX}px system-ui, sans-serif`;
/** Lines differ in color and in pattern, also on paper. */
const COLORS = ['leaf', 'sky', 'muted', 'brick', 'ochre'];
const DASHES = [[], [8, 4], [2, 3], [12, 3, 3, 3]];
/** Space above a plot for the names of marks, and at its right. */
const MARKS_PX = 18;
const RIGHT_PX = 4;
/** The axis of bars reaches at least to this number. */
const STACK_MIN = 4;
const WHOLE_STEPS = Array.from({ length: 9 }, (_, power) => [1, 2, 5].map(each => each * 10 ** power)).flat();
/** Times between two labels of the axis, in seconds. */
const TIME_STEPS = [
  1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1_200, 1_800, 3_600, 7_200, 10_800, 14_400, 21_600,
];
/** uPlot types its drawing functions as optional, but it has this one. */
const BARS = /** @type {import('./uplot.js').default.Series.BarsPathBuilderFactory} */ (Plotter.paths.bars)({
  size: [0.85, 60],
});
/** By how many samples a key moves the cursor. @type {Record<string, number>} */
const KEYS = {
  ArrowLeft: -1,
  ArrowRight: 1,
  PageUp: -10,
  PageDown: 10,
  Home: -Infinity,
  End: Infinity,
};

/** The minute of a second since 1970. @param {number} second */
export function minuteText(second) {
  return MINUTE.format(second * 1000);
}

/** @param {number} second since 1970 */
export function timeText(second) {
  return SECOND.format(second * 1000);
}

/** A sample of a line or a bar for the legend. @param {Omit<Line, 'name' | 'title'>} props */
export function Swatch({ lineStyle = 0, color }) {
  if (color !== undefined)
    return html`<svg class=${`bar-${color}`} style=${{ color: `var(--${color})` }} width="10" height="10" aria-hidden="true">
      <path d="M0 0H10V10H0z" fill="currentColor" />
    </svg>`;
  const style = { color: `var(--${COLORS[lineStyle % COLORS.length]})` };
  return html`<svg class=${`line${lineStyle}`} style=${style} width="20" height="8" aria-hidden="true">
    <path d="M0 4H20" stroke="currentColor" stroke-width="2.5" stroke-dasharray=${DASHES[lineStyle % DASHES.length]} />
  </svg>`;
}

/**
 * @typedef {import('./uplot.js').default} UPlot
 * @typedef {(name: string) => number | null} Sample null: not measured
 * @typedef {{ name: string, title?: string, lineStyle?: number, color?: string }} Line a line has a
 *   style, and bars have a color
 * @typedef {{ title: string, unit: string, seconds: number[], samples: (Sample | undefined)[],
 *   lines: readonly Line[], range: [from: number, to: number], height: number, index: number,
 *   marks: [second: number, text: string][], isHeld: boolean, isLogarithmic: boolean, text: string,
 *   isStacked?: boolean,
 *   onCursor: (second: number | undefined) => void,
 *   onZoom: (zoom?: [from: number, to: number]) => void }} PlotProps `text` describes the values at
 *   the index, and `isHeld` tells whether the user chose it. With `isStacked`, the values are numbers
 *   of requests, and bars show them on top of each other.
 */

/** A plot. For other lines or another scale, give the component another key. @param {PlotProps} props */
export function Plot(props) {
  const { title, seconds, samples, lines, height, index, isHeld, text, isStacked, onCursor, onZoom } = props;
  const shown = useRef(props);
  shown.current = props;
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plotter = useRef(/** @type {UPlot | undefined} */ (undefined));
  useEffect(() => {
    const { current: root } = place;
    if (root === null) return;
    const made = new Plotter(plotOptions(root, shown), [[]], root);
    plotter.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: root.clientWidth, height }));
    observer.observe(root);
    // A part of the time that does not move is drawn only once.
    const redraw = () => made.redraw();
    DARK.addEventListener('change', redraw);
    return () => {
      observer.disconnect();
      DARK.removeEventListener('change', redraw);
      made.destroy();
    };
  }, []);
  useEffect(() => {
    const values = lines.map(({ name }) => samples.map(sample => sample?.(name) ?? null));
    plotter.current?.setData([seconds, ...(isStacked ? stacked(values) : values)]);
  }, [samples]);
  useEffect(() => plotter.current && moveCursor(plotter.current, props), [index, isHeld]);
  const last = seconds.length - 1;
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const step = KEYS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    onCursor(seconds[Math.max(0, Math.min(last, index + step))]);
  };
  const onMove = () => {
    const left = plotter.current?.cursor.left ?? -1;
    onCursor(left < 0 ? undefined : seconds[plotter.current?.posToIdx(left) ?? last]);
  };
  const leave = () => onCursor(undefined);
  // The space is reserved, so that the page does not move when the plot appears.
  return html`<div ref=${place} class="note" style=${{ minHeight: `${height}px` }} tabindex="0" role="slider"
    aria-label=${`Time of ${title}`} aria-valuemin="0" aria-valuemax=${last} aria-valuenow=${index} aria-valuetext=${text}
    onKeyDown=${onKey} onBlur=${leave} onMouseMove=${onMove} onMouseLeave=${leave} onDblClick=${() => onZoom()}></div>`;
}

/**
 * @param {UPlot} plot
 * @param {PlotProps} shown
 */
function moveCursor(plot, { seconds, index, isHeld }) {
  plot.setCursor({ left: isHeld ? plot.valToPos(seconds[index] ?? 0, 'x') : -10, top: 0 });
}

/**
 * A color of the style sheet. uPlot reads it for each drawing, since the user may change between
 * light and dark.
 *
 * @param {Element | null | undefined} element
 */
function color(element) {
  return () => (element ? getComputedStyle(element).color : '');
}

/** A light color for the area below a line. @param {() => string} stroke */
function lightColor(stroke) {
  return () => stroke().replace(/^rgb\((.*)\)$/, 'rgba($1, 0.12)');
}

/**
 * @param {HTMLElement} root
 * @param {{ current: PlotProps }} shown
 * @returns {import('./uplot.js').default.Options}
 */
function plotOptions(root, shown) {
  const { lines, height, isLogarithmic, isStacked } = shown.current;
  const colorOf = (/** @type {string} */ name) => color(root.parentElement?.querySelector(`.${name}`));
  const stroke = color(root);
  const axis = { stroke, font: FONT, ticks: { show: false }, grid: { stroke, width: 0.2 } };
  /** @param {UPlot} plot */
  const onSelect = plot => {
    const { left, width } = plot.select;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (width > 0) shown.current.onZoom([plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]);
  };
  return {
    width: root.clientWidth,
    height,
    legend: { show: false },
    // The first line of marks is above the plot.
    padding: [MARKS_PX, RIGHT_PX, null, null],
    cursor: { y: false, drag: { x: true, y: false, setScale: false } },
    hooks: {
      setSelect: [onSelect],
      draw: [
        plot => {
          const background = root.parentElement ? getComputedStyle(root.parentElement).backgroundColor : '';
          drawMarks(plot, shown.current.marks, axis.stroke(), background);
        },
      ],
      // The cursor stays at its time when the plot moves, so the values that it shows stay.
      setScale: [plot => moveCursor(plot, shown.current)],
    },
    // The logarithmic scale has a linear part near 0, because many values are 0.
    scales: {
      x: { range: () => shown.current.range },
      y: {
        distr: isLogarithmic ? 4 : 1,
        asinh: 1,
        // A bar at the border is seen although its middle is outside, so all bars count.
        range: ({ data }, _min, max) => [
          0,
          isStacked
            ? Math.max(STACK_MIN, ...(data[1] ?? []).map(each => (each ?? 0) * 1.1))
            : Math.max(max * 1.1, 1),
        ],
      },
    },
    axes: [
      {
        ...axis,
        size: 26,
        splits: timeSplits,
        values: (_plot, splits) => {
          const [first = 0, second = first + 60] = splits;
          return splits.map(each => labelText(each, second - first));
        },
      },
      {
        ...axis,
        // The plots line up, so each has the same space for its numbers.
        size: 46,
        space: 26,
        values: (_plot, splits) => splits.map(numberText),
        // Requests are whole numbers.
        ...(isStacked && { incrs: WHOLE_STEPS }),
        ...(isLogarithmic && { splits: logarithmicSplits, filter: (_plot, splits) => splits }),
      },
    ],
    series: [
      {},
      ...lines.map(({ lineStyle = 0, color: barColor }, index) => {
        if (barColor !== undefined)
          return { fill: colorOf(`bar-${barColor}`), width: 0, paths: BARS, points: { show: false } };
        const stroke = colorOf(`line${lineStyle}`);
        const points = { show: false, size: 5, fill: stroke, filter: lonePoints };
        const line = { stroke, width: 1.5, points, dash: DASHES[lineStyle % DASHES.length] ?? [] };
        return index === 0 ? { ...line, fill: lightColor(stroke) } : line;
      }),
    ],
  };
}

/**
 * The numbers of a logarithmic axis: powers of ten, and more for a short axis.
 *
 * @param {UPlot} _plot
 * @param {number} _axis
 * @param {number} _min
 * @param {number} max
 */
function logarithmicSplits(_plot, _axis, _min, max) {
  const steps = max < 500 ? [1, 2, 5] : [1];
  const powers = Array.from({ length: Math.floor(Math.log10(max)) + 1 }, (_, power) => 10 ** power);
  return [0, ...powers.flatMap(power => steps.map(step => step * power))].filter(each => each <= max);
}

/**
 * The sums of values from the last line to each one, so that the bars of a line are seen above those
 * of the next lines, which are drawn later.
 *
 * @param {(number | null)[][]} values of each line
 */
function stacked(values) {
  return values.map((own, line) =>
    own.map((_, index) => values.slice(line).reduce((sum, each) => sum + (each[index] ?? 0), 0)),
  );
}

/**
 * The times of the labels: as many as have space, at full minutes or hours of the reader.
 *
 * @param {UPlot} plot
 * @param {number} _axis
 * @param {number} min
 * @param {number} max
 */
function timeSplits({ bbox }, _axis, min, max) {
  const scale = bbox.width / devicePixelRatio / (max - min);
  const step = TIME_STEPS.find(each => each * scale >= labelPx(each)) ?? 43_200;
  const offset = new Date(min * 1000).getTimezoneOffset() * 60;
  const splits = [];
  for (let at = Math.ceil((min - offset) / step) * step + offset; at <= max; at += step)
    if ((max - at) * scale + RIGHT_PX >= labelPx(step) / 2) splits.push(at);
  return splits;
}

/** The space of a label, with some around it. @param {number} step between labels, in seconds */
function labelPx(step) {
  return step < 60 ? 54 : step < 3_600 ? 40 : 58;
}

/** Without AM and PM, except for hours, so that more labels have space. @param {number} second */
function labelText(second, /** @type {number} */ step) {
  const format = step < 60 ? SECOND : MINUTE;
  const parts = format.formatToParts(second * 1000);
  const shown = step < 3_600 ? parts.filter(({ type }) => type !== 'dayPeriod') : parts;
  return shown
    .map(({ value }) => value)
    .join('')
    .trim();
}

/**
 * Draws marks. Their names are above the plot. Where two of them would meet, the next line has a
 * background, so that it can be read on top of the lines of the plot.
 *
 * @param {UPlot} plot
 * @param {[second: number, text: string][]} marks
 * @param {string} style
 * @param {string} background
 */
function drawMarks({ ctx, bbox, valToPos }, marks, style, background) {
  const scale = devicePixelRatio;
  const lineHeight = (FONT_PX + 4) * scale;
  /** Where the last name of each line ends. */
  const ends = /** @type {number[]} */ ([]);
  ctx.save();
  ctx.font = FONT.replace(String(FONT_PX), String(FONT_PX * scale));
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  for (const [second, text] of marks.toSorted(([one], [two]) => one - two)) {
    const x = valToPos(second, 'x', true);
    const { width } = ctx.measureText(text);
    // A name near the end is left of its mark.
    const left = Math.min(x - 3 * scale, bbox.left + bbox.width - width - 3 * scale);
    const found = ends.findIndex(end => end < left);
    const line = found < 0 ? ends.length : found;
    ends[line] = left + width + 6 * scale;
    const top = bbox.top - lineHeight + line * lineHeight;
    ctx.fillStyle = style;
    ctx.fillRect(x, bbox.top, scale, bbox.height);
    ctx.fillStyle = background;
    ctx.fillRect(left - 3 * scale, top, width + 6 * scale, lineHeight);
    ctx.fillStyle = style;
    ctx.fillText(text, left, top + lineHeight / 2);
  }
  ctx.restore();
}

/**
 * A value between two empty seconds has no line, so it is drawn as a point.
 *
 * @type {import('./uplot.js').default.Series.Points.Filter}
 */
const lonePoints = ({ data }, series) => {
  const isEmpty = (/** @type {number} */ index) => (data[series]?.[index] ?? null) === null;
  const indices = [...data[0].keys()];
  return indices.filter(index => !isEmpty(index) && isEmpty(index - 1) && isEmpty(index + 1));
};
