import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { COMMON_FIELDS, contentResponse, type HttpResponse } from '../http/response.ts';

/** The page may use its own files only, and nothing may frame it. */
const CONTENT_SECURITY_POLICY = [
  ...[
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
  ],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ');

const PROTECTION = [
  ...['Content-Security-Policy', CONTENT_SECURITY_POLICY],
  ...['Referrer-Policy', 'no-referrer', 'Cross-Origin-Resource-Policy', 'same-origin'],
];
/** Header fields of a response that is not a {@link contentResponse}. */
export const PAGE_FIELDS = [...COMMON_FIELDS, ...PROTECTION];

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

/** The package has this file minified only as a script that defines `uPlot`. */
function uPlot(): string {
  return readFileSync(fileURLToPath(import.meta.resolve('uplot/dist/uPlot.iife.min.js')), 'utf8');
}

/** By the path after `/console/`. The libraries are files of npm packages, as they are. */
const FILES: Record<string, () => [type: string, text: string]> = {
  '': () => [
    'text/html; charset=utf-8',
    readFileSync(new URL('./browser/index.html', import.meta.url), 'utf8'),
  ],
  'app.css': () => [STYLE, readFileSync(new URL('./browser/app.css', import.meta.url), 'utf8')],
  'app.js': () => [SCRIPT, readFileSync(new URL('./browser/app.js', import.meta.url), 'utf8')],
  'display.js': () => [SCRIPT, readFileSync(new URL('./browser/display.js', import.meta.url), 'utf8')],
  'now.js': () => [SCRIPT, readFileSync(new URL('./browser/now.js', import.meta.url), 'utf8')],
  'plants.js': () => [SCRIPT, readFileSync(new URL('./browser/plants.js', import.meta.url), 'utf8')],
  'plot.js': () => [SCRIPT, readFileSync(new URL('./browser/plot.js', import.meta.url), 'utf8')],
  'rejected.js': () => [SCRIPT, readFileSync(new URL('./browser/rejected.js', import.meta.url), 'utf8')],
  'requests.js': () => [SCRIPT, readFileSync(new URL('./browser/requests.js', import.meta.url), 'utf8')],
  'store.js': () => [SCRIPT, readFileSync(new URL('./browser/store.js', import.meta.url), 'utf8')],
  'tokens.js': () => [SCRIPT, readFileSync(new URL('./browser/tokens.js', import.meta.url), 'utf8')],
  'preact.js': () => [
    SCRIPT,
    readFileSync(fileURLToPath(import.meta.resolve('htm/preact/standalone')), 'utf8'),
  ],
  'uplot.js': () => [
    SCRIPT,
    `${uPlot()}
export { uPlot as default };`,
  ],
  'uplot.css': () => [
    STYLE,
    readFileSync(fileURLToPath(import.meta.resolve('uplot/dist/uPlot.min.css')), 'utf8'),
  ],
};

/** Each made at its first request. */
const made = new Map<string, HttpResponse<Uint8Array>>();

/** @returns undefined if the page has no such file */
export function pageFile(path: string): HttpResponse<Uint8Array> | undefined {
  const response = made.get(path);
  if (response !== undefined || !Object.hasOwn(FILES, path)) return response;
  const [type, text] = FILES[path]!();
  // Every browser that the page supports accepts gzip.
  const file = contentResponse(type, gzipSync(text, { level: 9 }), [
    ...PROTECTION,
    'Content-Encoding',
    'gzip',
  ]);
  made.set(path, file);
  return file;
}
