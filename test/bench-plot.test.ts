import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type Plot, plotSvg, shortNumber } from '../bench/plot.ts';

const PLOT: Plot = {
  title: 'Creates <by> size & kind',
  description: 'It says "more".',
  panels: [
    {
      x: { label: 'plants stored', scale: 'log' },
      y: { label: 'creates/s', scale: 'linear' },
      series: [
        {
          name: 'a & b',
          points: [point(1_000, 54_000), { ...point(1e6, 50_000), low: 40_000, high: 55_000 }],
        },
        { name: 'c', points: [point(1_000, 54_000), point(1e6, 50_001)] },
      ],
    },
  ],
};

suite('a plot', () => {
  test('is the same for the same figures', () => {
    assert.equal(plotSvg(PLOT), plotSvg(structuredClone(PLOT)));
  });

  test('is an image with a title and a description, and its text is escaped', () => {
    const svg = plotSvg(PLOT);
    assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" [^>]*role="img"/);
    assert.match(svg, /<title id="title">Creates &#60;by&#62; size &#38; kind<\/title>/);
    assert.match(svg, /<desc id="description">It says &#34;more&#34;\.<\/desc>/);
    assert.match(svg, />a &#38; b<\/text>/);
    assert.doesNotMatch(svg, /NaN|Infinity|undefined/);
  });

  test('can be read in the light and in the dark', () => {
    const svg = plotSvg(PLOT);
    const [, dark] = svg.split('@media (prefers-color-scheme: dark)');
    for (const rule of ['.ground', 'text', '.grid', '.s0', '.s1'])
      assert.ok(dark?.includes(`${rule} {`), rule);
  });

  test('has ticks at round numbers', () => {
    assert.deepEqual(ticksOf(plotSvg(PLOT), 'middle').slice(1), ['1 k', '10 k', '100 k', '1 M']);
    assert.deepEqual(ticksOf(plotSvg(PLOT), 'end'), ['0', '20 k', '40 k', '60 k']);
  });

  test('puts a point where its value belongs, with the spread of its repetitions', () => {
    const svg = plotSvg(withPoints([point(1, 0), { ...point(10, 50), low: 25, high: 100 }, point(100, 100)]));
    const [low, middle, high] = [...svg.matchAll(/cx="([0-9.]+)" cy="([0-9.]+)"/g)].map(match =>
      match.slice(1).map(Number),
    );
    assert.equal(middle![0], (low![0]! + high![0]!) / 2);
    assert.equal(middle![1], (low![1]! + high![1]!) / 2);
    assert.ok(svg.includes(`M${middle![0]} ${(low![1]! + middle![1]!) / 2}V${high![1]}`), 'from 25 to 100');
  });

  test('moves labels apart that would lie on each other', () => {
    const heights = [...plotSvg(PLOT).matchAll(/class="name[0-9]" x="[0-9.]+" y="([0-9.]+)"/g)].map(([, y]) =>
      Number(y),
    );
    assert.equal(heights.length, 2);
    assert.ok(Math.abs(heights[0]! - heights[1]!) >= 12, heights.join(' and '));
  });

  test('is not drawn without points, or of a value that its axis does not have', () => {
    assert.throws(() => plotSvg(withPoints([])), RangeError);
    assert.throws(() => plotSvg(withPoints([point(0, 1)])), RangeError);
    assert.throws(() => plotSvg(withPoints([point(1, -1)])), RangeError);
    assert.throws(() => plotSvg(withPoints([point(1, Number.NaN)])), RangeError);
  });

  test('writes numbers short', () => {
    assert.deepEqual([0, 0.25, 999, 1_000, 1_500, 64_000, 1e7].map(shortNumber), [
      ...['0', '0.25', '999', '1 k', '1.5 k', '64 k', '10 M'],
    ]);
  });
});

function point(x: number, y: number): { x: number; y: number } {
  return { x, y };
}

function withPoints(points: Plot['panels'][number]['series'][number]['points']): Plot {
  return { ...PLOT, panels: [{ ...PLOT.panels[0]!, series: [{ name: 'one', points }] }] };
}

/** In the order of the document; among those in the middle the label of the axis is the first. */
function ticksOf(svg: string, anchor: 'middle' | 'end'): string[] {
  return [...svg.matchAll(new RegExp(`text-anchor="${anchor}">([^<]*)<`, 'g'))].map(([, text]) => text!);
}
