import { gzipSync } from 'node:zlib';
import { openApiJson } from '../contract/openapi.ts';
import { type Answer, contentAnswer, jsonAnswer } from './answer.ts';
import { fieldValues } from './header-fields.ts';

/** Answers the GET of one path. The header fields of the request are given as names and values in turn. */
type AnswerTo = (rawHeaders: readonly string[]) => Answer<string | Uint8Array>;

/** What the listener says of itself, by path. */
export type Documentation = ReadonlyMap<string, AnswerTo>;

/** `/docs` for people, `/openapi.json` for programs. Both are made once. */
export function documentationOf(page: { html: string; contentSecurityPolicy: string }): Documentation {
  const fields = ['Content-Security-Policy', page.contentSecurityPolicy, 'Referrer-Policy', 'no-referrer'];
  // That it goes out in two codings needs no `Vary`: no cache may keep it.
  const plain = contentAnswer(HTML, page.html, fields);
  const gzipped = gzipSync(page.html, { level: 9 });
  const compressed = contentAnswer(HTML, gzipped, [...fields, 'Content-Encoding', 'gzip']);
  const openApi = jsonAnswer(200, openApiJson());
  return new Map<string, AnswerTo>([
    ['/docs', rawHeaders => (takesGzip(rawHeaders) ? compressed : plain)],
    ['/openapi.json', () => openApi],
  ]);
}

const HTML = 'text/html; charset=utf-8';
const GZIP = /^(?:x-)?gzip$/i;
/** RFC 9110 section 12.4.2: a weight of 0 means "not acceptable". */
const REFUSED = /^q=0(?:\.0{0,3})?$/i;

/** RFC 9110 section 12.5.3. What says nothing of gzip itself, `*` included, gets the page as it is. */
function takesGzip(rawHeaders: readonly string[]): boolean {
  return fieldValues(rawHeaders, 'accept-encoding')
    .flatMap(value => value.split(','))
    .map(element => element.split(';').map(part => part.trim()))
    .some(([coding = '', weight = '']) => GZIP.test(coding) && !REFUSED.test(weight));
}
