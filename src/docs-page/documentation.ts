import { gzipSync } from 'node:zlib';
import { openApiJson } from '../contract/openapi.ts';
import { type Answer, contentAnswer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import { fieldValues } from '../http/header-fields.ts';
import type { AnswerTo, Documentation } from '../http/plant-service.ts';

/** `/docs` for people, to which `/` leads a browser, and `/openapi.json` for programs. Both are made once. */
export function documentationOf(page: { html: string; contentSecurityPolicy: string }): Documentation {
  const fields = ['Content-Security-Policy', page.contentSecurityPolicy, 'Referrer-Policy', 'no-referrer'];
  // That it goes out in two codings needs no `Vary`: no cache may keep it.
  const plain = contentAnswer(HTML, page.html, fields);
  const gzipped = gzipSync(page.html, { level: 9 });
  const compressed = contentAnswer(HTML, gzipped, [...fields, 'Content-Encoding', 'gzip']);
  const openApi = jsonAnswer(200, openApiJson());
  const nothingHere = errorAnswer(
    'noSuchPath',
    'there is nothing here; GET /docs says how to send a plant to /plants',
  );
  return new Map<string, AnswerTo>([
    ['/', rawHeaders => (accepts(rawHeaders, 'accept', HTML_RANGE) ? seeOther('docs') : nothingHere)],
    ['/docs', rawHeaders => (accepts(rawHeaders, 'accept-encoding', GZIP) ? compressed : plain)],
    ['/docs/', () => seeOther('../docs')],
    ['/openapi.json', () => openApi],
  ]);
}

/** @param path relative, so that a proxy may put the service below a path of its own */
function seeOther(path: string): Answer {
  return contentAnswer('text/plain', '', ['Location', path], 303);
}

const HTML = 'text/html; charset=utf-8';
const HTML_RANGE = /^text\/html$/i;
const GZIP = /^(?:x-)?gzip$/i;
/** RFC 9110 section 12.4.2: a weight of 0 means "not acceptable". */
const REFUSED = /^q=0(?:\.0{0,3})?$/i;

/**
 * Whether a request asks for something by its name (RFC 9110 sections 12.5.1 and 12.5.3); `*` does not.
 *
 * @param field its name, in lower case
 */
function accepts(rawHeaders: readonly string[], field: string, wanted: RegExp): boolean {
  return fieldValues(rawHeaders, field)
    .flatMap(value => value.split(','))
    .map(element => element.split(';').map(part => part.trim()))
    .some(([range = '', weight = '']) => wanted.test(range) && !REFUSED.test(weight));
}
