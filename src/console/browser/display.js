// What several screens show: times, text of users, tables, errors, a copy button.
import { html, useState } from './preact.js';

const LOCAL_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const NUMBER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const SMALL_NUMBER = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });

/** @param {number | null | undefined} value null: nothing was measured */
export function numberText(value) {
  if (value === null || value === undefined) return '–';
  return (Math.abs(value) < 100 ? SMALL_NUMBER : NUMBER).format(value);
}

/**
 * A time in the zone of the reader, and in UTC as its title.
 *
 * @param {{ at: number }} props ms since 1970
 */
export function Time({ at }) {
  const date = new Date(at);
  const utc = date.toISOString();
  return html`<time datetime=${utc} title=${`${utc.replace('T', ' ').replace('Z', '')} UTC`}>${LOCAL_TIME.format(date)}</time>`;
}

/**
 * Text of a client, isolated from the direction of the text around it. Characters that are
 * invisible or change the order of others are escaped, since two texts must not seem equal.
 *
 * @param {{ text: string }} props
 */
export function Text({ text }) {
  return text === '' ? html`<em class="note">empty</em>` : html`<bdi class="text">${visible(text)}</bdi>`;
}

/** @param {string} text */
export function visible(text) {
  return text.replace(
    /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    character => `\\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`,
  );
}

/**
 * On a narrow screen a row becomes a list, so each cell repeats the name of its column. That style
 * would remove the role of a table, so the roles are explicit.
 *
 * @typedef {{ key: string, cells: readonly unknown[] }} Row
 * @param {{ caption: string, columns: readonly string[], rows: readonly Row[] }} props
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
  return html`<button type="button" onClick=${copy} onBlur=${() => setResult('')}>${label}</button> <span role="status" class="note">${result}</span>`;
}
