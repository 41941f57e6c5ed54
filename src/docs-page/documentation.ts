import { openApiJson } from '../contract/openapi.ts';
import { contentResponse, type HttpResponse, jsonResponse } from '../http/response.ts';
import type { Documentation } from '../http/server-context.ts';

/** `/docs` for people and `/openapi.json` for programs, both made once. */
export function documentationOf(page: { html: string; contentSecurityPolicy: string }): Documentation {
  const fields = ['Content-Security-Policy', page.contentSecurityPolicy, 'Referrer-Policy', 'no-referrer'];
  return new Map<string, HttpResponse>([
    ['/', seeOther('docs')],
    ['/docs', contentResponse('text/html; charset=utf-8', page.html, fields)],
    ['/docs/', seeOther('../docs')],
    ['/openapi.json', jsonResponse(200, openApiJson())],
  ]);
}

/** @param path a relative one, so that a proxy may put a path in front of the service */
function seeOther(path: string): HttpResponse {
  return contentResponse('text/plain', 'the documentation is at /docs\n', ['Location', path], 303);
}
