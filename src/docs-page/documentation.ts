import { openApiJson } from '../contract/openapi.ts';
import { fieldValues } from '../http/header-fields.ts';
import { contentResponse, errorResponse, type HttpResponse, jsonResponse } from '../http/response.ts';
import type { Documentation, GetHandler } from '../http/server-context.ts';

/** `/docs` for people and `/openapi.json` for programs, both made once. `/` redirects a browser. */
export function documentationOf(page: { html: string; contentSecurityPolicy: string }): Documentation {
  const fields = ['Content-Security-Policy', page.contentSecurityPolicy, 'Referrer-Policy', 'no-referrer'];
  const docs = contentResponse('text/html; charset=utf-8', page.html, fields);
  const openApi = jsonResponse(200, openApiJson());
  const nothingHere = errorResponse(
    'noSuchPath',
    'this path does not exist; GET /docs explains how to send a plant to /plants',
  );
  return new Map<string, GetHandler>([
    ['/', rawHeaders => (acceptsHtml(rawHeaders) ? seeOther('docs') : nothingHere)],
    ['/docs', () => docs],
    ['/docs/', () => seeOther('../docs')],
    ['/openapi.json', () => openApi],
  ]);
}

/** @param path a relative one, so that a proxy may put a path in front of the service */
function seeOther(path: string): HttpResponse {
  return contentResponse('text/plain', '', ['Location', path], 303);
}

const HTML = /^text\/html$/i;
/** RFC 9110 section 12.4.2: a weight of 0 means "not acceptable". */
const NOT_ACCEPTABLE = /^q=0(?:\.0{0,3})?$/i;

/** Whether a request accepts HTML by its name, not by `*` (RFC 9110 section 12.5.1). */
function acceptsHtml(rawHeaders: readonly string[]): boolean {
  return fieldValues(rawHeaders, 'accept')
    .flatMap(value => value.split(','))
    .map(element => element.split(';').map(part => part.trim()))
    .some(([range = '', weight = '']) => HTML.test(range) && !NOT_ACCEPTABLE.test(weight));
}
