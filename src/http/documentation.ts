import { gzipSync } from 'node:zlib';
import { openApiJson } from '../contract/openapi.ts';
import { type Answer, COMMON_FIELDS, jsonAnswer } from './answer.ts';
import { fieldValues } from './header-fields.ts';

/** A page as it is made, before it is served. */
export interface Page {
  html: string;
  /** What it may load and run: the value of its Content-Security-Policy. */
  contentSecurityPolicy: string;
}

/** Answers the GET of one path. The header fields of the request are given as names and values in turn. */
export type AnswerTo = (rawHeaders: readonly string[]) => Answer<string | Uint8Array>;

/** What the listener says of itself: `/docs` for people, `/openapi.json` for programs. Both are made once. */
export class Documentation {
  /** By path. */
  readonly answers: ReadonlyMap<string, AnswerTo>;

  constructor(page: Page) {
    const plain = pageAnswer(page, Buffer.from(page.html));
    const compressed = pageAnswer(page, gzipSync(page.html, { level: 9 }), ['Content-Encoding', 'gzip']);
    const openApi = jsonAnswer(200, openApiJson());
    this.answers = new Map<string, AnswerTo>([
      ['/docs', rawHeaders => (takesGzip(rawHeaders) ? compressed : plain)],
      ['/openapi.json', () => openApi],
    ]);
  }
}

/** That it goes out in two codings needs no `Vary`: no cache may keep it. */
function pageAnswer(
  { contentSecurityPolicy }: Page,
  body: Uint8Array,
  coding: readonly string[] = [],
): Answer<Uint8Array> {
  const headers = [
    ...['Content-Type', 'text/html; charset=utf-8', ...COMMON_FIELDS],
    ...['Content-Security-Policy', contentSecurityPolicy, 'Referrer-Policy', 'no-referrer'],
    ...['Content-Length', String(body.length), ...coding],
  ];
  return { result: 'other', status: 200, headers, body };
}

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
