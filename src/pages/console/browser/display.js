// Parts that several screens use: times, text of clients, tables, forms.
import { html } from './preact.js';

const LOCAL_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
/** Writes three significant digits, or all digits before the decimal point. */
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
 * @param {number} at ms since 1970
 */
export function time(at) {
  const utc = new Date(at).toISOString();
  return html`<time datetime=${utc} title=${`${utc.slice(0, -1).replace('T', ' ')} UTC`}>${LOCAL_TIME.format(at)}</time>`;
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
 * @param {string | undefined} text
 */
export function clientText(text) {
  if (!text) return html`<em class="note">${text === undefined ? 'none' : 'empty'}</em>`;
  return html`<bdi class="text">${escaped(text)}</bdi>`;
}

/**
 * A table. On a narrow screen, a row becomes a list, in which each cell shows the name of its
 * column. That style removes the implicit roles of a table, so the roles are explicit.
 *
 * @typedef {Record<string, (row: any) => unknown>} Columns by title
 * @param {{ name: string, rows: readonly any[], columns: Columns }} props
 */
export function Table({ name, rows, columns }) {
  const titles = Object.keys(columns);
  return html`<table role="table" aria-label=${name}>
    <thead role="rowgroup"><tr role="row">${titles.map(title => html`<th role="columnheader" scope="col">${title}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map(
      row =>
        html`<tr role="row">${titles.map(title => html`<td role="cell" data-column=${title}><div>${columns[title]?.(row)}</div></td>`)}</tr>`,
    )}</tbody>
  </table>`;
}

/**
 * A list of facts. A row without text is hidden. A time is shown before the text.
 *
 * @param {{ rows: [label: string, text?: string, at?: number][] }} props
 */
export function Facts({ rows }) {
  return html`<dl>
    ${rows.map(
      ([label, text, at]) =>
        text &&
        html`<dt>${label}</dt>
          <dd>${at === undefined ? null : html`${time(at)}, `}${clientText(text)}</dd>`,
    )}
  </dl>`;
}

/** Reads a form instead of sending it. @param {SubmitEvent} event */
export function readForm(event) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.currentTarget);
  const texts = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form)));
  return { form, texts };
}
