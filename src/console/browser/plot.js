// A plot over time. The list of values beside it is the text alternative.
import { numberText } from './display.js';
import { html, useEffect, useRef } from './preact.js';
import Plotter from './uplot.js';

const SECOND = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const MINUTE = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const SMALLEST_Y_MAX = 1;
const FONT = '12px system-ui, sans-serif';
const MARK_LINE_HEIGHT = 14;
/** The classes of the colors in app.css. With the patterns, 20 lines differ. */
const COLORS = 5;
const DASHES = [[], [8, 4], [2, 3], [12, 3, 3, 3]];
/** Samples by which a key moves the cursor. */
const KEYS = /** @type {Record<string, number>} */ ({
  ...{ ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 },
  ...{ Home: Number.NEGATIVE_INFINITY, End: Number.POSITIVE_INFINITY },
});

/** @param {number} second since 1970 */
export function timeText(second) {
  return SECOND.format(second * 1000);
}

/** @param {number} look */
function dashOf(look) {
  return DASHES[(look + Math.floor(look / COLORS)) % DASHES.length] ?? [];
}

/** A piece of a line as in the plot. @param {{ look: number }} props */
export function Swatch({ look }) {
  return html`<svg class=${`swatch color${look % COLORS}`} width="32" height="4" aria-hidden="true"><line x2="32" y1="2" y2="2" stroke="currentColor" stroke-width="3" stroke-dasharray=${dashOf(look).join(' ')} /></svg>`;
}

/**
 * @typedef {import('./uplot.js').default} UPlot
 * @typedef {{ name: string, label: string, look: number }} Line
 * @typedef {{ at: number, text: string }} Mark
 */

/**
 * @param {{ title: string, unit: string, seconds: number[], lines: readonly Line[], values: readonly (number | null)[][],
 *   height: number, marks: Mark[], cursor: number | undefined, text: string,
 *   onCursor: (second: number | undefined) => void, onZoom: (from?: number, to?: number) => void }} props
 *   a value is null if nothing was measured; `text` describes the values at the cursor. For other
 *   lines, give the component another key
 */
export function Plot(props) {
  const { title, seconds, lines, values, height, marks, cursor, text, onCursor } = props;
  const shown = useRef(props);
  shown.current = props;
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plotter = useRef(/** @type {UPlot | undefined} */ (undefined));
  useEffect(() => {
    const { current: root } = place;
    if (root === null) return;
    const made = new Plotter(plotOptions(root, shown, lines), [[]], root);
    plotter.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: root.clientWidth, height }));
    observer.observe(root);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => {
    plotter.current?.setData(/** @type {import('./uplot.js').default.AlignedData} */ ([seconds, ...values]));
  }, [seconds, marks]);
  useEffect(() => plotter.current && moveCursor(plotter.current, cursor), [cursor]);
  const last = seconds.length - 1;
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const step = KEYS[event.key];
    if (event.key === 'Escape') onCursor(undefined);
    if (step === undefined) return;
    event.preventDefault();
    const index = cursor === undefined ? last : seconds.indexOf(cursor);
    onCursor(seconds[Math.max(0, Math.min(last, index + step))]);
  };
  return html`<div ref=${place} class="plot" style=${{ minHeight: `${height}px` }} tabindex="0" role="slider"
    aria-label=${`${title}: plot; arrow keys move along the time`} aria-valuemin="0" aria-valuemax=${last}
    aria-valuenow=${cursor === undefined ? last : seconds.indexOf(cursor)} aria-valuetext=${text}
    onKeyDown=${onKey} onBlur=${() => onCursor(undefined)}></div>`;
}

/**
 * @param {UPlot} plot
 * @param {number | undefined} second
 */
function moveCursor(plot, second) {
  plot.setCursor({ left: second === undefined ? -10 : plot.valToPos(second, 'x'), top: 0 });
}

/**
 * Gets a color of the style sheet. uPlot calls it for each drawing, because the user may change
 * between light and dark.
 *
 * @param {Element | null | undefined} element
 * @param {'color' | 'borderTopColor'} property
 */
function color(element, property) {
  return () => (element ? getComputedStyle(element)[property] : '');
}

/**
 * @param {HTMLElement} root
 * @param {{ current: Parameters<typeof Plot>[0] }} shown
 * @param {readonly Line[]} lines
 * @returns {import('./uplot.js').default.Options}
 */
function plotOptions(root, shown, lines) {
  const axis = { stroke: color(root, 'color'), font: FONT, ticks: { show: false } };
  const grid = { stroke: color(root, 'borderTopColor'), width: 1 };
  return {
    width: root.clientWidth,
    height: shown.current.height,
    legend: { show: false },
    // Half of the last time is beside the plot.
    padding: [null, 36, null, null],
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false },
      bind: {
        mousemove: (plot, _target, handler) => event => {
          handler(event);
          shown.current.onCursor(shown.current.seconds[plot.posToIdx(plot.cursor.left ?? 0)]);
          return null;
        },
        mouseleave: (_plot, _target, handler) => event => {
          handler(event);
          shown.current.onCursor(undefined);
          return null;
        },
        dblclick: () => () => {
          shown.current.onZoom();
          return null;
        },
      },
    },
    hooks: {
      setSelect: [
        plot => {
          const { left, width } = plot.select;
          if (width === 0) return;
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          shown.current.onZoom(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
        },
      ],
      draw: [plot => drawMarks(plot, shown.current.marks, getComputedStyle(root).color)],
      // The cursor stays at its time, and not below the pointer, so that its values stay.
      setScale: [(plot, scale) => scale === 'x' && moveCursor(plot, shown.current.cursor)],
    },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, SMALLEST_Y_MAX)] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 30,
        space: 80,
        incrs: [5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200],
        values: (_plot, splits, _axis, _space, seconds) =>
          splits.map(second => (seconds < 60 ? SECOND : MINUTE).format(second * 1000)),
      },
      {
        ...{ ...axis, grid, size: 56, space: 26, label: shown.current.unit, labelFont: FONT, labelSize: 18 },
        values: (_plot, splits) => splits.map(numberText),
      },
    ],
    series: [
      {},
      ...lines.map(({ look }) => {
        const stroke = color(root.parentElement?.querySelector(`.color${look % COLORS}`), 'color');
        const points = { show: false, size: 5, fill: stroke, filter: lonePoints };
        return { stroke, width: 2, points, dash: dashOf(look) };
      }),
    ],
  };
}

/**
 * @param {UPlot} plot
 * @param {Mark[]} marks
 * @param {string} style
 */
function drawMarks({ ctx, bbox, valToPos }, marks, style) {
  const scale = devicePixelRatio;
  ctx.save();
  ctx.font = FONT.replace('12', String(12 * scale));
  Object.assign(ctx, { fillStyle: style, textBaseline: 'top' });
  for (const [index, { at, text }] of marks.entries()) {
    const x = valToPos(at, 'x', true);
    ctx.fillRect(x, bbox.top, scale, bbox.height);
    // Neighbors are in different lines, and a text near the end is before its mark.
    const isEnd = x > bbox.left + bbox.width - 50 * scale;
    ctx.textAlign = isEnd ? 'right' : 'left';
    ctx.fillText(text, x + (isEnd ? -4 : 4) * scale, bbox.top + (index % 3) * MARK_LINE_HEIGHT * scale);
  }
  ctx.restore();
}

/**
 * A value between two empty seconds has no line, so it is drawn as a point.
 *
 * @param {UPlot} plot
 * @param {number} series
 */
function lonePoints(plot, series) {
  const values = plot.data[series] ?? [];
  const isEmpty = (/** @type {number} */ index) => (values[index] ?? null) === null;
  return [...values.keys()].filter(index => !isEmpty(index) && isEmpty(index - 1) && isEmpty(index + 1));
}
