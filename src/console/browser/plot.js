// A plot over time. The list of values beside it is the text alternative.
import { html, useEffect, useRef } from './preact.js';

/** Undefined if the locale of the browser is not a language tag, such as en-US@posix. */
const Plotter = await import('./uplot.js').then(
  loaded => loaded.default,
  () => undefined,
);

/** @typedef {import('./uplot.js').default} UPlot */

const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const SMALLEST_Y_MAX = 1;
/** For users who prefer reduced motion: the plot does not move every second. */
const REDUCED_MOTION_INTERVAL_MS = 15_000;
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

/** @param {number} second since 1970 */
export function timeText(second) {
  return TIME.format(second * 1000);
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
 * @typedef {(number | null)[]} Values one for each second; null if nothing was measured
 * @typedef {{ name: string, label: string, dash?: number[] }} Line
 */

/**
 * @param {{ title: string, seconds: number[], lines: readonly Line[], values: readonly Values[],
 *   height: number, onCursor: (index: number | undefined) => void }} props
 */
export function Plot({ title, seconds, lines, values, height, onCursor }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plotter = useRef(/** @type {UPlot | undefined} */ (undefined));
  const drawnAt = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const { current: root } = place;
    if (root === null || Plotter === undefined) return;
    const made = new Plotter(plotOptions(root, lines, height, onCursor), [[]], root);
    plotter.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: root.clientWidth, height }));
    observer.observe(root);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => {
    const now = performance.now();
    if (reducedMotion.matches && now - drawnAt.current < REDUCED_MOTION_INTERVAL_MS) return;
    drawnAt.current = now;
    plotter.current?.setData(/** @type {import('./uplot.js').default.AlignedData} */ ([seconds, ...values]));
  }, [seconds]);
  if (Plotter === undefined)
    return html`<p class="note">No plot: this browser does not tell its language. Its settings have it.</p>`;
  // The page does not move when the plot appears.
  return html`<div ref=${place} class="plot" style=${{ minHeight: `${height}px` }} role="img" aria-label=${`Plot of ${title}; its values are in the list beside it`}></div>`;
}

/**
 * @param {HTMLElement} root
 * @param {readonly Line[]} lines
 * @param {number} height
 * @param {(index: number | undefined) => void} onCursor
 * @returns {import('./uplot.js').default.Options}
 */
function plotOptions(root, lines, height, onCursor) {
  const axis = { stroke: color(root, 'color'), font: '12px system-ui, sans-serif', ticks: { show: false } };
  const grid = { stroke: color(root, 'borderTopColor'), width: 1 };
  return {
    width: root.clientWidth,
    height,
    legend: { show: false },
    // All plots show the same second below the pointer.
    cursor: { sync: { key: 'now' }, drag: { x: false, y: false }, y: false },
    hooks: { setCursor: [({ cursor }) => onCursor(cursor.idx ?? undefined)] },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, SMALLEST_Y_MAX)] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 30,
        space: 90,
        // On a phone, the default would have one label in five minutes.
        incrs: [5, 15, 30, 60, 120, 180, 300],
        values: (_plot, splits) => splits.map(timeText),
      },
      { ...axis, grid, size: 56, space: 26 },
    ],
    series: [
      {},
      ...lines.map(({ name, dash }) => {
        const stroke = color(root.parentElement?.querySelector(`.swatch.${name}`), 'borderTopColor');
        const points = { show: false, size: 5, fill: stroke, filter: lonePoints };
        return { stroke, width: 2, points, ...(dash && { dash }) };
      }),
    ],
  };
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
