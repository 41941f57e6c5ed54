import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { errorAnchor, helpLink } from '../../client/help-link.ts';
import { CREATE_PLANT, ID_SCHEMA, openApiJson, SCHEMAS, STATUS_DESCRIPTIONS } from '../../client/openapi.ts';
import { ERROR_NAMES, ERRORS, type ErrorName, errorBody, ID_RULE } from '../../core/contract/errors.ts';
import { contentResponse, type HttpResponse, jsonResponse, STATUS_TEXTS } from '../../core/response.ts';
import type { Documentation } from '../../server/plant-server.ts';
import { codeSamples } from './code-samples.ts';
import { ERROR_HELP } from './error-help.ts';
import { Html, html, sentence } from './html.ts';
import { plantForm } from './plant-form.ts';

export const PAGE_STYLE = [
  readFileSync(new URL('../style.css', import.meta.url), 'utf8'),
  readFileSync(new URL('./browser/page.css', import.meta.url), 'utf8'),
].join('\n');
/** A script of the head, since a browser may paint the page before it runs a module. */
const EARLY_SCRIPT = readFileSync(new URL('./browser/before-paint.js', import.meta.url), 'utf8');
export const PAGE_SCRIPT = readFileSync(new URL('./browser/page.js', import.meta.url), 'utf8');

/**
 * Makes `/openapi.json` for programs, and `/docs` for people, which is one file and loads no other.
 *
 * @param publicUrl the address that both show; undefined: the address from which they were loaded
 */
export function documentationOf(version: string, publicUrl?: string): Documentation {
  // The policy allows the style and the scripts of the page by their hashes, and requests to its
  // origin.
  const contentSecurityPolicy = [
    "default-src 'none'",
    `style-src ${hashSource(PAGE_STYLE)}`,
    `script-src ${hashSource(EARLY_SCRIPT)} ${hashSource(PAGE_SCRIPT)}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  const fields = ['Content-Security-Policy', contentSecurityPolicy, 'Referrer-Policy', 'no-referrer'];
  const pages = new Map<string, HttpResponse>([
    ['/', seeOther('docs')],
    ['/docs', contentResponse('text/html; charset=utf-8', page(version, publicUrl).text, fields)],
    ['/docs/', seeOther('../docs')],
    ['/openapi.json', jsonResponse(200, openApiJson(publicUrl))],
  ]);
  return { pages, helpFields: Object.fromEntries(ERROR_NAMES.map(name => [name, ['Link', helpLink(name)]])) };
}

/** @param path is relative, so that a proxy may put a path in front of the service */
function seeOther(path: string): HttpResponse {
  return contentResponse('text/plain', 'the documentation is at /docs\n', ['Location', path], 303);
}

/** The hash-source of Content Security Policy Level 3 for the text between two tags. */
function hashSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Cpath fill='%232c7a51' " +
  "d='M27 4C13 4 5 10 5 20c0 3 1 5 2 7 2-7 7-12 14-15-6 5-10 10-11 16 11 2 17-7 17-24z'/%3E%3C/svg%3E";

function page(version: string, publicUrl?: string): Html {
  const { plantsAddress, samples } = codeSamples(publicUrl);
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Plant store: how to send a plant</title>
<link rel="icon" href="${ICON}">
<style>${new Html(PAGE_STYLE)}</style>
<script>${new Html(EARLY_SCRIPT)}</script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><nav aria-label="On this page">
<strong>Plant store <span class="note">${version}</span></strong>
<a href="#send">Send a plant</a>
<a href="#request">Request</a>
<a href="#response">Response</a>
<a href="#errors">Errors</a>
</nav></header>
<main id="content">
<section class="columns"><div>
<h1>Send a plant to the store</h1>
<p><code class="address">POST ${plantsAddress}</code><br>A 200 means that the plant is on disk.</p></div>
<p class="note">${CREATE_PLANT.description}</p>
</section>
${plantForm(samples)}
<div class="columns">
${requestSection()}
${responseSection()}
</div>
${errorsSection()}
</main>
<footer class="note"><p>This page is generated from the contract of the service. Programs can read <a href="openapi.json">openapi.json</a> (OpenAPI 3.1).</p></footer>
<script type="module">${new Html(PAGE_SCRIPT)}</script>
</body>
</html>
`;
}

function requestSection(): Html {
  const { name, tag } = SCHEMAS.Plant.properties;
  return html`<section id="request">
<h2>Request</h2>
<p>Send a bearer token in the <code>Authorization</code> header, and a plant as JSON in UTF-8 (<code>NewPlant</code> in the description). The operator of the
service creates the token with <code>plant-store token create LABEL</code>.</p>
<dl>
${field('id', 'integer, int64, required', ID_SCHEMA.description)}
${field('name', 'string, required', `${name.description}. It may be empty.`)}
${field('tag', 'string, optional', `${tag.description}. It may be empty, but not null. An empty tag is not the same as no tag.`)}
</dl>
<p>Other members are ignored. The service rejects a body that contains a member twice. It also rejects text with U+0000
or an unpaired surrogate, since not every database can store it.</p>
<dl>${CREATE_PLANT.parameters.map(({ name, description }) => field(name, 'header, optional', description))}</dl>
</section>`;
}

function responseSection(): Html {
  const { description, headers } = CREATE_PLANT.responses[200];
  return html`<section id="response">
<h2>Response</h2>
<p><strong>200.</strong> ${description} The body is the stored Plant, without
its id. The headers contain the id and the outcome.</p>
<pre>HTTP/1.1 200 OK
Content-Type: application/json
Plant-Id: 9007199254740993
Plant-Revision: 1
Plant-Outcome: created

{"name":"Monstera deliciosa","tag":"houseplant"}</pre>
<dl>${Object.entries(headers).map(([name, { description, required }]) =>
    field(name, required ? 'always' : 'only with a rate limit', description),
  )}</dl>
</section>`;
}

function errorsSection(): Html {
  return html`<section id="errors">
<h2>Errors</h2>
<div class="columns"><div><p>Every response except 200 has a body like this one. Programs should use the number, whose meaning never changes: it is
the status times 100 plus a counter. The message is for people. The <code>Link</code> header of the response leads to the error on this page.</p>
<pre>${JSON.stringify(errorBody('notNewPlant', `id must be ${ID_RULE}`))}</pre></div>
<p>A status from 400 to 499 means that nothing was stored. After 500, 503 or no response, the plant may or may not be
stored. Send the same plant again until the response is 200. This changes nothing if the plant is already the latest revision.</p></div>
<details><summary>All ${ERROR_NAMES.length} errors, with what to do</summary>
<dl>${ERROR_NAMES.map(errorRow)}</dl></details>
<details><summary>Headers of errors</summary>
<dl>${Object.entries(STATUS_DESCRIPTIONS).flatMap(([status, { headers = {} }]) =>
    Object.entries(headers).map(([name, { description }]) => field(name, `with ${status}`, description)),
  )}</dl></details>
</section>`;
}

function errorRow(name: ErrorName): Html {
  const { number, status, message, retry } = ERRORS[name];
  return html`<div class="columns" id="${errorAnchor(name)}">
<dt><code>${number}</code> ${message}</dt>
<dd>${sentence(ERROR_HELP[name])}
<span class="note">Status: ${status} ${STATUS_TEXTS[status]}. Retry: ${retry ? 'yes, the same request may succeed later' : 'no, the same request fails again'}.</span></dd>
</div>
`;
}

function field(name: string, note: string, description: string): Html {
  return html`<div class="columns">
<dt><code>${name}</code> <span class="note">${note}</span></dt>
<dd>${description}</dd>
</div>
`;
}
