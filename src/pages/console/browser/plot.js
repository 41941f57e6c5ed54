// A plot over time. The list of values beside it is the text alternative.
import { numberText } from './display.js';
import { html, useEffect, useRef } from './preact.js';
import Plotter from './uplot.js';

const SECOND = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const MINUTE = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const FONT_PX = 11;
const FONT = `${FONT_PX}px system-ui, sans-serif`;
/** Lines differ in color and in pattern, also on paper. */
const COLORS = ['leaf', 'sky', 'muted', 'brick', 'ochre'];
const DASHES = [[], [8, 4], [2, 3], [12, 3, 3, 3]];
/** By how many samples a key moves the cursor. @type {Record<string, number>} */
const KEYS = {
  ArrowLeft: -1,
  ArrowRight: 1,
  PageUp: -10,
  PageDown: 10,
  Home: -Infinity,
  End: Infinity,
};

/** @param {number} second since 1970 */
export function timeText(second) {
  return SECOND.format(second * 1000);
}

/** A sample of a line for the legend. @param {{ lineStyle: number }} props */
export function Swatch({ lineStyle }) {
  const style = { color: `var(--${COLORS[lineStyle % COLORS.length]})` };
  return html`<svg class=${`line${lineStyle}`} style=${style} width="20" height="8" aria-hidden="true">
    <path d="M0 4H20" stroke="currentColor" stroke-width="2.5" stroke-dasharray=${DASHES[lineStyle % DASHES.length]} />
  </svg>`;
}

/**
 * @typedef {import('./uplot.js').default} UPlot
 * @typedef {(name: string) => number | null} Sample null: not measured
 * @typedef {{ title: string, unit: string, seconds: number[], samples: (Sample | undefined)[],
 *   lines: readonly { name: string, lineStyle: number }[], height: number, index: number,
 *   marks: [second: number, text: string][], isHeld: boolean, isLogarithmic: boolean, text: string,
 *   onCursor: (second: number | undefined) => void,
 *   onZoom: (zoom?: [from: number, to: number]) => void }} PlotProps `text` describes the values at
 *   the index, and `isHeld` tells whether the user chose it
 */

/** A plot. For other lines or another scale, give the component another key. @param {PlotProps} props */
export function Plot(props) {
  const { title, seconds, samples, lines, height, index, isHeld, text, onCursor, onZoom } = props;
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
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => {
    const values = lines.map(({ name }) => samples.map(sample => sample?.(name) ?? null));
    plotter.current?.setData([seconds, ...values]);
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
  const { lines, height, isLogarithmic } = shown.current;
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
    // Half of the last time label is outside the plot.
    padding: [8, 24, null, null],
    cursor: { y: false, drag: { x: true, y: false, setScale: false } },
    hooks: {
      setSelect: [onSelect],
      draw: [plot => drawMarks(plot, shown.current.marks, axis.stroke())],
      // The cursor stays at its time when the plot moves, so the values that it shows stay.
      setScale: [plot => moveCursor(plot, shown.current)],
    },
    // The logarithmic scale has a linear part near 0, because many values are 0.
    scales: {
      y: { distr: isLogarithmic ? 4 : 1, asinh: 1, range: (_plot, _min, max) => [0, Math.max(max * 1.1, 1)] },
    },
    axes: [
      {
        ...axis,
        size: 26,
        space: 70,
        values: (_plot, splits, _axis, _space, seconds) =>
          splits.map(second => (seconds < 60 ? SECOND : MINUTE).format(second * 1000)),
      },
      {
        ...axis,
        // The plots line up, so each has the same space for its numbers.
        size: 46,
        space: 26,
        values: (_plot, splits) => splits.map(numberText),
        ...(isLogarithmic && { splits: logarithmicSplits, filter: (_plot, splits) => splits }),
      },
    ],
    series: [
      {},
      ...lines.map(({ lineStyle }, index) => {
        const stroke = color(root.parentElement?.querySelector(`.line${lineStyle}`));
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
 * @param {UPlot} plot
 * @param {[second: number, text: string][]} marks
 * @param {string} style
 */
function drawMarks({ ctx, bbox, valToPos }, marks, style) {
  const scale = devicePixelRatio;
  ctx.save();
  Object.assign(ctx, { fillStyle: style, font: FONT.replace(String(FONT_PX), String(FONT_PX * scale)) });
  for (const [index, [second, text]] of marks.entries()) {
    const x = valToPos(second, 'x', true);
    ctx.fillRect(x, bbox.top, scale, bbox.height);
    // Texts of neighboring marks are in different lines. A text near the end is left of its mark.
    const isEnd = x > bbox.left + bbox.width - 50 * scale;
    ctx.textAlign = isEnd ? 'right' : 'left';
    ctx.fillText(text, x + (isEnd ? -4 : 4) * scale, bbox.top + ((index % 3) + 1) * FONT_PX * scale);
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
