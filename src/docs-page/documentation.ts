import { gzipSync } from 'node:zlib';
import { openApiJson } from '../contract/openapi.ts';
import { fieldValues } from '../http/header-fields.ts';
import { contentResponse, errorResponse, type HttpResponse, jsonResponse } from '../http/response.ts';
import type { Documentation, GetHandler } from '../http/server-context.ts';

/** `/docs` for people and `/openapi.json` for programs, both made once. `/` redirects a browser. */
export function documentationOf(page: { html: string; contentSecurityPolicy: string }): Documentation {
  const fields = ['Content-Security-Policy', page.contentSecurityPolicy, 'Referrer-Policy', 'no-referrer'];
  // The two content codings need no `Vary`, since no cache may store the page.
  const plain = contentResponse(HTML, page.html, fields);
  const gzipped = gzipSync(page.html, { level: 9 });
  const compressed = contentResponse(HTML, gzipped, [...fields, 'Content-Encoding', 'gzip']);
  const openApi = jsonResponse(200, openApiJson());
  const nothingHere = errorResponse(
    'noSuchPath',
    'this path does not exist; GET /docs explains how to send a plant to /plants',
  );
  return new Map<string, GetHandler>([
    ['/', rawHeaders => (accepts(rawHeaders, 'accept', HTML_RANGE) ? seeOther('docs') : nothingHere)],
    ['/docs', rawHeaders => (accepts(rawHeaders, 'accept-encoding', GZIP) ? compressed : plain)],
    ['/docs/', () => seeOther('../docs')],
    ['/openapi.json', () => openApi],
  ]);
}

/** @param path a relative one, so that a proxy may put a path in front of the service */
function seeOther(path: string): HttpResponse {
  return contentResponse('text/plain', '', ['Location', path], 303);
}

const HTML = 'text/html; charset=utf-8';
const HTML_RANGE = /^text\/html$/i;
const GZIP = /^(?:x-)?gzip$/i;
/** RFC 9110 section 12.4.2: a weight of 0 means "not acceptable". */
const NOT_ACCEPTABLE = /^q=0(?:\.0{0,3})?$/i;

/**
 * Whether a header accepts a value by its name, not by `*` (RFC 9110 sections 12.5.1 and 12.5.3).
 *
 * @param field the name of the header, in lower case
 */
function accepts(rawHeaders: readonly string[], field: string, wanted: RegExp): boolean {
  return fieldValues(rawHeaders, field)
    .flatMap(value => value.split(','))
    .map(element => element.split(';').map(part => part.trim()))
    .some(([range = '', weight = '']) => wanted.test(range) && !NOT_ACCEPTABLE.test(weight));
}
