/**
 * Draws the pictures in docs/growth from the measurements that the benchmark writes for them.
 *
 *   node bench/plots.js RESULTS_FILE FOLDER
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';

const WIDTH = 640;
const HEIGHT = 260;
const CONNECTIONS = {
  type: 'log',
  base: 2,
  label: 'connections',
  ticks: [1, 4, 16, 64, 256, 1024],
  tickFormat: String,
};
const LATENCY = { type: 'log', label: 'latency, ms', grid: true };
const RATE = { label: 'creates/s', grid: true, zero: true, tickFormat: 's' };

const { document } = parseHTML('<html></html>');
const [resultsFile, folder] = process.argv.slice(2);
const results = existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : {};
mkdirSync(folder, { recursive: true });

draw('connections', measurements => {
  const loads = measurements.filter(({ connections }) => connections !== undefined);
  const points = (name, unit, line) =>
    loads.map(({ connections, figures }) => ({ x: connections, y: figures[name] / unit, line }));
  return [
    panel(CONNECTIONS, RATE, points('ratePerSecond', 1, 'creates')),
    panel(CONNECTIONS, LATENCY, [...points('p50Us', 1000, 'median'), ...points('p99Us', 1000, 'p99')]),
  ];
});

draw('stored', measurements => {
  const loads = measurements.filter(({ connections }) => connections === 64);
  const points = loads.map(({ subject, stored, figures }) => ({
    x: stored,
    y: figures.ratePerSecond,
    line: subject.endsWith('random ids') ? 'random ids' : 'ascending ids',
  }));
  return [
    panel({ type: 'log', label: 'plants stored before, 64 connections', tickFormat: 's' }, RATE, points),
  ];
});

draw('faults', measurements =>
  [...Map.groupBy(measurements, ({ subject }) => subject)].map(([subject, of]) => {
    const points = (name, line) =>
      of
        .filter(({ figures }) => figures[name] !== undefined)
        .map(({ atMs, figures }) => ({ x: atMs / 1000, y: figures[name] / 1000, line }));
    const failed = of.filter(({ figures }) => figures.failures > 0);
    const marks = [
      Plot.tickX(failed, {
        x: ({ atMs }) => atMs / 1000,
        stroke: 'crimson',
        strokeOpacity: 0.3,
        strokeWidth: 5,
      }),
    ];
    const latencies = [...points('maxUs', 'longest'), ...points('p50Us', 'median')];
    return panel({ label: `${subject}: seconds` }, LATENCY, latencies, marks);
  }),
);

/** Writes a picture of all panels, one below the other, if its part was measured. */
function draw(name, panelsOf) {
  if (results[name] === undefined) return;
  const panels = panelsOf(results[name]);
  for (const [index, each] of panels.entries()) {
    each.setAttribute('y', index * HEIGHT);
    // This style is only needed on pages with several plots.
    each.querySelector('style').remove();
  }
  const height = panels.length * HEIGHT;
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}">\n` +
    `<rect width="100%" height="100%" fill="white"/>\n${panels.map(each => each.toString()).join('\n')}\n</svg>\n`;
  writeFileSync(join(folder, `${name}.svg`), svg);
}

/**
 * Draws a line through the medians of points with the same x, and lines from minimum to maximum.
 */
function panel(x, y, points, marks = []) {
  const place = { x: 'x', stroke: 'line' };
  const end = Math.max(...points.map(each => each.x));
  const ends = points.filter(each => each.x === end);
  const name = { x: 'x', y: 'y', z: 'line', fill: 'line', textAnchor: 'start', dx: 8 };
  return Plot.plot({
    document,
    width: WIDTH,
    height: HEIGHT,
    marginLeft: 50,
    marginRight: 90,
    x,
    y,
    color: { range: ['#4269d0', '#efb118'] },
    marks: [
      ...marks,
      Plot.lineY(points, Plot.groupX({ y: 'median' }, { ...place, y: 'y' })),
      Plot.ruleX(points, Plot.groupX({ y1: 'min', y2: 'max' }, { ...place, y1: 'y', y2: 'y' })),
      Plot.text(ends, Plot.groupX({ y: 'median', text: 'first' }, { ...name, text: 'line' })),
    ],
  });
}
