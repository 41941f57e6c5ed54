import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { contentResponse, type HttpResponse } from '../../core/response.ts';

/** Allows only files of the page itself, and no frame around the page. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const FIELDS = Object.entries({
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  // Every browser that the page supports accepts it.
  'Content-Encoding': 'gzip',
}).flat();

/**
 * Functions that read the files of the page, by the path after `/console/`. So the start of the
 * service reads none. Packaging includes files named in these forms (`packaging/named-files.ts`).
 */
const TEXTS: Record<string, () => string> = {
  '': () => readFileSync(new URL('./browser/index.html', import.meta.url), 'utf8'),
  'app.css': () => readFileSync(new URL('./browser/app.css', import.meta.url), 'utf8'),
  'banner.js': () => readFileSync(new URL('./browser/banner.js', import.meta.url), 'utf8'),
  'app.js': () => readFileSync(new URL('./browser/app.js', import.meta.url), 'utf8'),
  'display.js': () => readFileSync(new URL('./browser/display.js', import.meta.url), 'utf8'),
  'error-words.js': () => readFileSync(new URL('./browser/error-words.js', import.meta.url), 'utf8'),
  'statistics.js': () => readFileSync(new URL('./browser/statistics.js', import.meta.url), 'utf8'),
  'now.css': () => readFileSync(new URL('./browser/now.css', import.meta.url), 'utf8'),
  'newest.js': () => readFileSync(new URL('./browser/newest.js', import.meta.url), 'utf8'),
  'now.js': () => readFileSync(new URL('./browser/now.js', import.meta.url), 'utf8'),
  'plants.css': () => readFileSync(new URL('./browser/plants.css', import.meta.url), 'utf8'),
  'plants.js': () => readFileSync(new URL('./browser/plants.js', import.meta.url), 'utf8'),
  'plot.js': () => readFileSync(new URL('./browser/plot.js', import.meta.url), 'utf8'),
  'preact.js': () => readFileSync(new URL(import.meta.resolve('htm/preact/standalone')), 'utf8'),
  'rejected.js': () => readFileSync(new URL('./browser/rejected.js', import.meta.url), 'utf8'),
  'requests.js': () => readFileSync(new URL('./browser/requests.js', import.meta.url), 'utf8'),
  'screens.css': () => readFileSync(new URL('./browser/screens.css', import.meta.url), 'utf8'),
  'search.js': () => readFileSync(new URL('./browser/search.js', import.meta.url), 'utf8'),
  'store.js': () => readFileSync(new URL('./browser/store.js', import.meta.url), 'utf8'),
  'style.css': () => readFileSync(new URL('../style.css', import.meta.url), 'utf8'),
  'tags.js': () => readFileSync(new URL('./browser/tags.js', import.meta.url), 'utf8'),
  'tokens.js': () => readFileSync(new URL('./browser/tokens.js', import.meta.url), 'utf8'),
  'uplot.css': () => readFileSync(new URL(import.meta.resolve('uplot/dist/uPlot.min.css')), 'utf8'),
  // uPlot reads the language of the browser, and fails if it is no language tag, as with the locale
  // C.UTF-8.
  'uplot.js': () => `const navigator = { language: 'en' };
${readFileSync(new URL(import.meta.resolve('uplot/dist/uPlot.iife.min.js')), 'utf8')}
export { uPlot as default };`,
};
const TYPES: Record<string, string> = { '': 'text/html', css: 'text/css', js: 'text/javascript' };

/** Compressed responses by path. */
const cache = new Map<string, HttpResponse<Uint8Array>>();

/** @param path what follows `/console/` @returns undefined if the page has no such file */
export function pageFile(path: string): HttpResponse<Uint8Array> | undefined {
  if (!cache.has(path) && Object.hasOwn(TEXTS, path)) {
    const type = TYPES[path.split('.')[1] ?? ''];
    const body = gzipSync(TEXTS[path]!(), { level: 9 });
    cache.set(path, contentResponse(`${type}; charset=utf-8`, body, FIELDS));
  }
  return cache.get(path);
}
