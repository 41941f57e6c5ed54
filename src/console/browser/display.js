// What several screens use: times, text of clients, tables, forms, errors, a copy button.
import { html, useState } from './preact.js';

const LOCAL_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const UTC_DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' });
/** Three significant digits, and all digits before the decimal point. */
const NUMBER = new Intl.NumberFormat(undefined, {
  maximumSignificantDigits: 3,
  maximumFractionDigits: 1,
  roundingPriority: 'morePrecision',
});

/** @param {number | null | undefined} value null: nothing was measured */
export function numberText(value) {
  return value === null || value === undefined ? '–' : NUMBER.format(value);
}

/**
 * A time in the zone of the reader, and in UTC as its title.
 *
 * @param {{ at: number }} props ms since 1970
 */
export function Time({ at }) {
  const utc = new Date(at).toISOString();
  return html`<time datetime=${utc} title=${`${utc.slice(0, -1).replace('T', ' ')} UTC`}>${LOCAL_TIME.format(at)}</time>`;
}

/** @param {{ day: string }} props a day in UTC, such as 2026-11-22 */
export function Day({ day }) {
  return html`<time datetime=${day} title="a day in UTC">${UTC_DAY.format(new Date(day))}</time>`;
}

/**
 * Escapes characters that are invisible or change the order of others, so that different texts
 * never seem equal. A lone surrogate from U+DC80 is a byte that is not UTF-8.
 *
 * @param {string} text of a client
 */
export function escaped(text) {
  return text.replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, character => {
    const code = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0');
    return /^dc[89a-f]/.test(code) ? `\\x${code.slice(2)}` : `\\u${code}`;
  });
}

/**
 * Text of a client. Its writing direction does not affect the text around it.
 *
 * @param {{ text: string | undefined }} props
 */
export function Text({ text }) {
  if (!text) return html`<em class="note">${text === undefined ? 'none' : 'empty'}</em>`;
  return html`<bdi class="text">${escaped(text)}</bdi>`;
}

/**
 * On a narrow screen, a row becomes a list, in which each cell shows the name of its column. That
 * style removes the implicit roles of a table, so the roles are explicit.
 *
 * @param {{ caption: string, columns: readonly string[],
 *   rows: readonly { key: string, cells: readonly unknown[] }[] }} props
 */
export function Table({ caption, columns, rows }) {
  return html`<table role="table">
    <caption class="hidden">${caption}</caption>
    <thead role="rowgroup"><tr role="row">${columns.map(column => html`<th role="columnheader" scope="col">${column}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map(
      ({ key, cells }) =>
        html`<tr role="row" key=${key}>${cells.map((cell, index) => html`<td role="cell" data-column=${columns[index]}><div>${cell}</div></td>`)}</tr>`,
    )}</tbody>
  </table>`;
}

/**
 * @typedef {[label: string, text: string, at?: number]} FactRow with a time before the text
 * @param {{ rows: FactRow[] }} props
 */
export function Facts({ rows }) {
  return html`<dl class="rows">${rows.map(([label, text, at]) => html`<div key=${label}><dt>${label}</dt><dd>${at === undefined ? null : html`<${Time} at=${at} />, `}<${Text} text=${text} /></dd></div>`)}</dl>`;
}

/** @param {SubmitEvent} event of a form, which the browser then does not send */
export function readForm(event) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.currentTarget);
  const texts = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form)));
  return { form, texts };
}

/** @param {{ what: string, error: Error | undefined }} props */
export function Problem({ what, error }) {
  if (error === undefined) return null;
  return html`<p class="verdict" data-state="fault" role="alert">${`${what}: ${error.message}.`}</p>`;
}

/**
 * A browser allows access to the clipboard only over TLS or from localhost.
 *
 * @param {{ text: string, label: string }} props
 */
export function CopyButton({ text, label }) {
  const [result, setResult] = useState('');
  if (navigator.clipboard === undefined) return null;
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setResult('Copied'),
      () => setResult('The browser did not allow it'),
    );
  return html`<button type="button" onClick=${copy}>${label}</button> <span role="status" class="note">${result}</span>`;
}
