/** An axis; a logarithmic one is for values above 0. */
export interface Axis {
  /** What is measured, and its unit. */
  label: string;
  scale: 'linear' | 'log';
  /** Where ticks stand; without them they stand at round numbers. */
  ticks?: readonly number[];
  /** What a tick says; {@link shortNumber} when absent. */
  format?: (value: number) => string;
}

/** Measured at x: y, and the lowest and highest of its repetitions where there are some. */
export interface Point {
  x: number;
  y: number;
  low?: number;
  high?: number;
}

/** A line with its name beside its end. */
export interface Series {
  name: string;
  points: readonly Point[];
}

/** One or more charts side by side, of at most three series each. */
export interface Plot {
  title: string;
  /** What there is to see, for those who cannot see it. */
  description: string;
  panels: readonly { x: Axis; y: Axis; series: readonly Series[] }[];
}

const PANEL = { width: 420, height: 300, left: 64, top: 62, bottom: 50, right: 32 };
const LABEL_HEIGHT = 15;
/** Of a character, on the average; a text is given room by it. */
const CHARACTER_WIDTH = 6.4;
/** Of the ground, the text, the grid and each series. Dashes tell the lines apart where colours do not. */
const LIGHT = ['#ffffff', '#1f2328', '#d1d9e0', '#0969da', '#bc4c00', '#1a7f37'];
const DARK = ['#0d1117', '#e6edf3', '#30363d', '#58a6ff', '#f0883e', '#3fb950'];
const DASHES = ['none', '6 3', '2 3'];

/**
 * Draws a plot as an SVG document. The same figures give the same bytes.
 *
 * @throws {RangeError} for a plot without points, and for a value that its axis cannot show
 */
export function plotSvg({ title, description, panels }: Plot): string {
  const width = panels.length * PANEL.width;
  const body = panels.map(
    (panel, index) => `<g transform="translate(${index * PANEL.width} 0)">\n${drawPanel(panel)}\n</g>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${PANEL.height}" width="${width}" height="${PANEL.height}" role="img" aria-labelledby="title description">
<title id="title">${escapeText(title)}</title>
<desc id="description">${escapeText(description)}</desc>
<style>
text { font: 12px system-ui, sans-serif }
.title { font-size: 15px; font-weight: 600 }
.line { fill: none; stroke-width: 2 }
${DASHES.map((dashes, index) => `.line.s${index} { stroke-dasharray: ${dashes} }`).join('\n')}
${colours(LIGHT)}
@media (prefers-color-scheme: dark) {
${colours(DARK)}
}
</style>
<rect class="ground" width="${width}" height="${PANEL.height}"/>
<text class="title" x="16" y="24">${escapeText(title)}</text>
${body.join('\n')}
</svg>
`;
}

/** A number with k for thousands and M for millions, as a tick has room for it. */
export function shortNumber(value: number): string {
  if (value >= 1e6) return `${rounded(value / 1e6)} M`;
  return value >= 1e3 ? `${rounded(value / 1e3)} k` : String(rounded(value));
}

function colours([ground, ink, grid, ...series]: readonly string[]): string {
  return [
    `.ground { fill: ${ground} }`,
    `text { fill: ${ink} }`,
    `.grid { stroke: ${grid} }`,
    ...series.map(
      (colour, index) =>
        `.s${index} { stroke: ${colour} } circle.s${index}, .name${index} { fill: ${colour} }`,
    ),
  ].join('\n');
}

function drawPanel({ x, y, series }: Plot['panels'][number]): string {
  const points = series.flatMap(each => each.points);
  if (points.length === 0) throw new RangeError('a plot needs at least one point');
  const names = series.length > 1 ? series.map(({ name }) => name) : [];
  const labelWidth = Math.max(0, ...names.map(name => name.length * CHARACTER_WIDTH + 8));
  const across = place(
    x,
    points.map(point => point.x),
    PANEL.left,
    PANEL.width - PANEL.right - labelWidth,
  );
  const heights = points.flatMap(point => [point.y, point.low ?? point.y, point.high ?? point.y]);
  const down = place(y, heights, PANEL.height - PANEL.bottom, PANEL.top);
  const lines = series.map(({ points }, index) => drawLine(points, index, across.at, down.at));
  const ends = series.map(({ points }) => down.at(points.at(-1)!.y));
  const right = across.at(across.last);
  return [
    `<text x="16" y="${PANEL.top - 12}">${escapeText(y.label)}</text>`,
    `<text x="${half(PANEL.left + right)}" y="${PANEL.height - 12}" text-anchor="middle">${escapeText(x.label)}</text>`,
    ...down.ticks.map(tick => {
      const at = down.at(tick);
      return `<path class="grid" d="M${PANEL.left} ${at}H${right}"/><text x="${PANEL.left - 8}" y="${at + 4}" text-anchor="end">${escapeText((y.format ?? shortNumber)(tick))}</text>`;
    }),
    ...across.ticks.map(tick => {
      const at = across.at(tick);
      const bottom = PANEL.height - PANEL.bottom;
      return `<path class="grid" d="M${at} ${bottom}v5"/><text x="${at}" y="${bottom + 18}" text-anchor="middle">${escapeText((x.format ?? shortNumber)(tick))}</text>`;
    }),
    ...lines,
    ...spreadOut(ends.slice(0, names.length)).map(
      (at, index) =>
        `<text class="name${index}" x="${right + 10}" y="${at + 4}">${escapeText(names[index]!)}</text>`,
    ),
  ].join('\n');
}

function drawLine(
  points: readonly Point[],
  index: number,
  across: (x: number) => number,
  down: (y: number) => number,
): string {
  const way = points.map(({ x, y }) => `${across(x)} ${down(y)}`).join('L');
  const spread = points
    .filter(({ low, high }) => low !== undefined && high !== undefined)
    .map(({ x, low, high }) => `M${across(x)} ${down(low!)}V${down(high!)}`)
    .join('');
  return [
    `<path class="line s${index}" d="M${way}"/>`,
    ...(spread === '' ? [] : [`<path class="s${index}" d="${spread}"/>`]),
    ...points.map(({ x, y }) => `<circle class="s${index}" cx="${across(x)}" cy="${down(y)}" r="3"/>`),
  ].join('\n');
}

/** Where values of an axis stand between two ends, in pixels. A linear axis begins at 0, so that heights compare. */
function place(axis: Axis, values: readonly number[], start: number, end: number) {
  const lowest = Math.min(...values);
  const highest = Math.max(...values);
  if (!Number.isFinite(lowest + highest) || (axis.scale === 'log' ? lowest <= 0 : lowest < 0)) {
    throw new RangeError(`"${axis.label}" has a value that a ${axis.scale} axis cannot show`);
  }
  const ticks = axis.ticks ?? (axis.scale === 'log' ? logTicks(lowest, highest) : linearTicks(highest));
  const scale = axis.scale === 'log' ? Math.log : (value: number) => value;
  const first = axis.scale === 'log' ? Math.min(lowest, ticks[0]!) : 0;
  const last = Math.max(highest, ticks.at(-1)!);
  const span = scale(last) - scale(first) || 1;
  return {
    ticks,
    last,
    at: (value: number): number => rounded(start + ((scale(value) - scale(first)) / span) * (end - start)),
  };
}

/** Powers of ten that hold all values; 2 and 5 between them where there is but one step. */
function logTicks(lowest: number, highest: number): number[] {
  const first = Math.floor(Math.log10(lowest) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(Math.log10(highest) - 1e-9));
  if (last === first + 1) return [1, 2, 5, 10].map(each => each * 10 ** first);
  return Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
}

/** From 0 in steps of 1, 2 or 5 of a power of ten, about five of them. */
function linearTicks(highest: number): number[] {
  const rough = (highest || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= rough * 0.999)!;
  return Array.from({ length: Math.ceil((highest || 1) / step - 1e-9) + 1 }, (_, index) => index * step);
}

/** Moves labels apart that would overlap, each as little as the ones above it allow. */
function spreadOut(positions: readonly number[]): number[] {
  const moved = [...positions];
  const order = [...positions.keys()].sort((a, b) => positions[a]! - positions[b]!);
  for (const [rank, index] of order.entries()) {
    const above = order[rank - 1];
    if (above !== undefined) moved[index] = Math.max(moved[index]!, moved[above]! + LABEL_HEIGHT);
  }
  return moved;
}

function half(sum: number): number {
  return rounded(sum / 2);
}

/** To two places, which is finer than a screen, and keeps the document short. */
function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

function escapeText(text: string): string {
  return text.replace(/[&<>"]/g, found => `&#${found.charCodeAt(0)};`);
}
