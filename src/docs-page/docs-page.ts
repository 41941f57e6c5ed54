import { createHash } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import {
  ERRORS,
  type ErrorName,
  type ErrorStatus,
  errorBody,
  errorNamesOf,
  ID_RULE,
} from '../contract/errors.ts';
import { errorAnchor } from '../contract/help-link.ts';
import { ID_MAX, ID_MIN } from '../contract/limits.ts';
import {
  CREATE_PLANT,
  type Header,
  ID_SCHEMA,
  PLANT_HEADERS,
  PLANT_RESPONSE,
  SCHEMAS,
  STATUS_DESCRIPTIONS,
} from '../contract/openapi.ts';
import { CODE_SAMPLES, type CodeSample, SAMPLE_ADDRESS } from './code-samples.ts';
import { ERROR_ADVICE } from './error-advice.ts';
import { Html, html, sentence } from './html.ts';
import { PAGE_SCRIPT, PAGE_STYLE } from './page-files.ts';
import { plantForm } from './plant-form.ts';

/**
 * Writes the documentation page: one file that loads nothing further, made of the contract, so that it says what the
 * service does.
 *
 * @returns the page, and the Content-Security-Policy that it goes out with: of style and script it allows what it was
 *   written with, by their hashes, and requests to where it came from
 */
export function docsPage(): { html: string; contentSecurityPolicy: string } {
  const contentSecurityPolicy = [
    "default-src 'none'",
    `style-src ${hashSource(PAGE_STYLE)}`,
    `script-src ${hashSource(PAGE_SCRIPT)}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  return { html: page().text, contentSecurityPolicy };
}

/** A hash-source of Content Security Policy Level 3: of what stands between the tags, to the last line end. */
function hashSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Cpath fill='%232c7a51' " +
  "d='M27 4C13 4 5 10 5 20c0 3 1 5 2 7 2-7 7-12 14-15-6 5-10 10-11 16 11 2 17-7 17-24z'/%3E%3C/svg%3E";

function page(): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Plant store: how to send a plant</title>
<link rel="icon" href="${ICON}">
<style>${new Html(PAGE_STYLE)}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<p class="brand">plant store</p>
<nav aria-label="On this page"><ul>
<li><a href="#send">Send a plant</a></li>
<li><a href="#request">Request</a></li>
<li><a href="#answer">Answer</a></li>
<li><a href="#code">Code</a></li>
<li><a href="#errors">Errors</a></li>
</ul></nav>
</header>
<main id="content">
<section class="opening">
<h1>One operation takes a plant, and answers when it is on disk.</h1>
<p class="address"><span class="method">POST</span> <span data-address>${SAMPLE_ADDRESS}</span>/plants</p>
<p>${CREATE_PLANT.description}</p>
</section>
${plantForm()}
${requestSection()}
${answerSection()}
${codeSection()}
${errorsSection()}
</main>
<footer><p>Made from the contract that the service itself keeps to. For programs:
<a href="openapi.json">openapi.json</a>, OpenAPI 3.1.</p></footer>
<script type="module">${new Html(PAGE_SCRIPT)}</script>
</body>
</html>
`;
}

function requestSection(): Html {
  const { name, tag } = SCHEMAS.Plant.properties;
  const fields = [
    { field: 'id', type: 'integer, int64', isRequired: true, description: ID_SCHEMA.description },
    { field: 'name', type: 'string', isRequired: true, description: `${name.description}; may be empty.` },
    {
      field: 'tag',
      type: 'string',
      isRequired: false,
      description: `${tag.description}; may be empty, which is not the same as absent. Not null.`,
    },
  ];
  return html`<section id="request">
<h2>Request</h2>
<p>A bearer token in <code>Authorization</code>, and a NewPlant as JSON in UTF-8. The operator of the service makes the
token, with <code>plant-store token create LABEL</code>.</p>
<pre tabindex="0" role="group" aria-label="An example of a request">POST /plants HTTP/1.1
Authorization: Bearer &lt;ACCESS_TOKEN&gt;
Content-Type: application/json

{"id":${ID_MAX.toString()},"name":"Ficus lyrata","tag":"houseplant"}</pre>
<dl class="fields">
${fields.map(
  ({ field, type, isRequired, description }) => html`<div>
<dt><code>${field}</code> <span class="type">${type}</span> <span class="need">${isRequired ? 'required' : 'optional'}</span></dt>
<dd>${description}</dd>
</div>`,
)}
</dl>
<p>Other members are ignored; one that is given twice is refused. Text that holds U+0000 or half a surrogate pair is
refused, since not every store can keep it.</p>
</section>`;
}

function answerSection(): Html {
  return html`<section id="answer">
<h2>Answer</h2>
<p><strong>200.</strong> ${PLANT_RESPONSE.description} The body is the Plant as it was kept, without its id; the headers
have the id and say what was done.</p>
<pre tabindex="0" role="group" aria-label="An example of an answer">HTTP/1.1 200 OK
Content-Type: application/json
Plant-Id: ${ID_MAX.toString()}
Plant-Revision: 1
Plant-Outcome: created

{"name":"Ficus lyrata","tag":"houseplant"}</pre>
${headerList(PLANT_HEADERS)}
</section>`;
}

function headerList(headers: Record<string, Header>): Html {
  return html`<dl class="fields">
${Object.entries(headers).map(
  ([name, { description, required }]) => html`<div>
<dt><code>${name}</code> <span class="need">${required ? 'always' : 'where it applies'}</span></dt>
<dd>${description}</dd>
</div>`,
)}
</dl>`;
}

function errorsSection(): Html {
  const statuses = [...new Set(Object.values(ERRORS).map(({ status }) => status))];
  return html`<section id="errors">
<h2>Errors</h2>
<p>Every answer but 200 has the body below. Go by the number, which never changes its meaning; the message is for a
person. The header <code>Link</code> of each leads to its place here.</p>
<pre tabindex="0" role="group" aria-label="An example of an error">${JSON.stringify(errorBody('notNewPlant', `id must be ${ID_RULE}`))}</pre>
<p>After 400 to 499 nothing is stored. After 500 or 503, or no answer at all, send the same plant again: that settles
whether it is stored, and harms nothing.</p>
${statuses.map(statusErrors)}
</section>`;
}

function statusErrors(status: ErrorStatus): Html {
  const { description, headers } = STATUS_DESCRIPTIONS[status];
  return html`<section class="status" aria-labelledby="status-${status}">
<h3 id="status-${status}">${status} <span>${STATUS_CODES[status] ?? ''}</span></h3>
<p>${description}</p>
${headers === undefined ? '' : headerList(headers)}
${errorNamesOf(status).map(errorEntry)}
</section>`;
}

function errorEntry(name: ErrorName): Html {
  const { number, message, retry } = ERRORS[name];
  const { meaning, advice } = ERROR_ADVICE[name];
  const anchor = errorAnchor(name);
  return html`<article class="error" id="${anchor}" aria-labelledby="${anchor}-number">
<div>
<h4 id="${anchor}-number"><a href="#${anchor}">${number}</a></h4>
<p class="retry">${retry ? 'The same request may succeed later' : 'The same request fails again'}</p>
</div>
<div>
<p class="message">${message}</p>
<p>${sentence(meaning)}</p>
<p><strong>What to do.</strong> ${sentence(advice)}</p>
</div>
</article>`;
}

function codeSection(): Html {
  return html`<section id="code">
<h2>Code</h2>
<p>Each sends the largest id there is, <code>${ID_MAX.toString()}</code>, without losing a digit of it; the smallest is
<code>${ID_MIN.toString()}</code>. The token comes from the environment variable <code>PLANT_STORE_TOKEN</code>.</p>
<fieldset class="languages">
<legend>Language</legend>
${CODE_SAMPLES.map(
  ({ language }, index) =>
    html`<label><input type="radio" name="language" value="${language}"${
      index === 0 ? new Html(' checked') : ''
    }>${language}</label>`,
)}
</fieldset>
${CODE_SAMPLES.map(codeSample)}
</section>`;
}

function codeSample({ language, note, code }: CodeSample): Html {
  const [first = '', ...rest] = code.split(SAMPLE_ADDRESS);
  const filled = rest.map(part => html`<span data-address>${SAMPLE_ADDRESS}</span>${part}`);
  return html`<div class="sample" data-language="${language}">
<div class="note"><p>${note}</p><button type="button" class="copy" hidden>Copy</button></div>
<pre tabindex="0" role="group" aria-label="${language}">${first}${filled}</pre>
</div>`;
}
