// Parts that several screens use: times, text of clients, tables, forms.
import { html, useEffect, useState } from './preact.js';

/** Times such as "2 min ago" are written again after this time. */
const AGE_INTERVAL_MS = 5_000;
/** A time that is further away is shown as a date. */
const AGE_DAYS_MAX = 30;
const LOCAL_DATE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const LOCAL_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const LOCAL_HOUR = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const LOCAL_DAY_AND_HOUR = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
/** Writes three significant digits, or all digits before the decimal point. */
const NUMBER = new Intl.NumberFormat(undefined, {
  maximumSignificantDigits: 3,
  maximumFractionDigits: 1,
  roundingPriority: 'morePrecision',
});

/**
 * How many plants the store had at a time, in ms since 1970.
 *
 * @typedef {{ plants: number, at: number, isComplete: boolean }} Total
 */

/** @param {number | null | undefined} value null: nothing was measured */
export function numberText(value) {
  return value === null || value === undefined ? '–' : NUMBER.format(value);
}

/** Writes a number with at most three digits, such as 33.1K. @param {number} value */
export function shortText(value) {
  return SHORT.format(value);
}

/** @param {number} bytes @returns {[number: string, unit: string]} */
export function bytesText(bytes) {
  if (bytes > 0 && bytes < 1e6) return ['< 1', 'MB'];
  return bytes < 1e9 ? [numberText(bytes / 1e6), 'MB'] : [numberText(bytes / 1e9), 'GB'];
}

export const COUNT = new Intl.NumberFormat();
const SHORT = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 3 });

/** Functions that write the shown ages again. */
const listeners = /** @type {Set<() => void>} */ (new Set());
setInterval(() => {
  for (const write of listeners) write();
}, AGE_INTERVAL_MS);

/**
 * How long ago a time is, or how far ahead.
 *
 * @param {number} at ms since 1970
 */
export function ageText(at) {
  const seconds = (Date.now() - at) / 1000;
  const age = Math.abs(seconds);
  // The clock of the service may be a little ahead.
  if (age < 5) return 'now';
  if (age >= AGE_DAYS_MAX * 86_400) return LOCAL_DATE.format(at);
  const [unitSeconds, unit] =
    age < 60 ? [1, 's'] : age < 3_600 ? [60, 'min'] : age < 172_800 ? [3_600, 'h'] : [86_400, 'days'];
  const text = `${Math.floor(age / unitSeconds)} ${unit}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** @param {number} at ms since 1970 */
function utcText(at) {
  return `${new Date(at).toISOString().slice(0, -1).replace('T', ' ')} UTC`;
}

/** A time as its age. The exact time is its title. @param {number} at ms since 1970 */
export function time(at) {
  return html`<${Age} at=${at} />`;
}

/** @param {{ at: number }} props */
function Age({ at }) {
  const [, redraw] = useState(0);
  useEffect(() => {
    const write = () => redraw(previous => previous + 1);
    listeners.add(write);
    return () => listeners.delete(write);
  }, []);
  return html`<time datetime=${new Date(at).toISOString()} title=${`${LOCAL_TIME.format(at)}, ${utcText(at)}`}>${ageText(at)}</time>`;
}

/** Since when the lists in memory are. @param {number} at when the service started; ms since 1970 */
export function startText(at) {
  const isToday = LOCAL_DATE.format(at) === LOCAL_DATE.format(Date.now());
  return `since the start at ${(isToday ? LOCAL_HOUR : LOCAL_DAY_AND_HOUR).format(at)}`;
}

/** A time in the zone of the reader, and in UTC as its title. @param {number} at ms since 1970 */
export function exactTime(at) {
  return html`<time datetime=${new Date(at).toISOString()} title=${utcText(at)}>${LOCAL_TIME.format(at)}</time>`;
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
 * A table. On a narrow screen, the first cell of a row is its title, and each further cell shows
 * the name of its column. That style removes the implicit roles of a table, so the roles are
 * explicit.
 *
 * @typedef {Record<string, (row: any) => unknown>} Columns by title
 * @param {{ name: string, rows: readonly any[], columns: Columns, numbers?: readonly string[] }}
 *   props `numbers` are the titles of columns whose digits line up at the right
 */
export function Table({ name, rows, columns, numbers = [] }) {
  const titles = Object.keys(columns);
  const classOf = (/** @type {string} */ title) => (numbers.includes(title) ? 'number' : undefined);
  return html`<table role="table" aria-label=${name}>
    <thead role="rowgroup"><tr role="row">${titles.map(title => html`<th role="columnheader" scope="col" class=${classOf(title)}>${title}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map(
      row =>
        html`<tr role="row">${titles.map(title => html`<td role="cell" class=${classOf(title)} data-column=${title}><div>${columns[title]?.(row)}</div></td>`)}</tr>`,
    )}</tbody>
  </table>`;
}

/**
 * A list of facts. A row without text is hidden. A time is shown before the text. The screen Store
 * has the commands; elsewhere, a link leads to it.
 *
 * @typedef {{ label: string, text?: string, at?: number,
 *   advice?: { text: string, command: string, note?: string } }} Fact
 * @param {{ rows: Fact[], hasCommands?: boolean }} props
 */
export function Facts({ rows, hasCommands = false }) {
  return html`<dl>
    ${rows.map(
      ({ label, text, at, advice }) =>
        text &&
        html`<div><dt>${label}</dt>
          <dd>
            ${at === undefined ? null : html`${time(at)}: `}${clientText(text)}
            ${advice && !hasCommands && html`; <a href="#store">how to</a>`}
            ${advice && hasCommands && html`<p>${advice.text}</p><${Command} text=${advice.command} />${advice.note && html`<p class="note">${advice.note}</p>`}`}
          </dd></div>`,
    )}
  </dl>`;
}

/**
 * A command for a terminal. A line breaks only at a blank, or inside a word that is too long.
 *
 * @param {{ text: string }} props
 */
export function Command({ text }) {
  return html`<div class="command">
    <pre>${text.split(' ').map((word, index) => html`${index > 0 && ' '}<span>${word}</span>`)}</pre>
    <${CopyButton} text=${text} title="Copy" />
  </div>`;
}

/** A button that copies a text. @param {{ text: string, title: string }} props */
export function CopyButton({ text, title }) {
  const [result, setResult] = useState('');
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setResult('Copied'),
      () => setResult('The browser did not allow it'),
    );
  // A browser allows access to the clipboard only over TLS or from localhost.
  return html`${navigator.clipboard && html`<button type="button" onClick=${copy}>${title}</button>`}
    <span role="status" class="note">${result}</span>`;
}

/**
 * The result of the last count of all plants, or a dash before it.
 *
 * @param {Total | null} total
 */
export function totalText(total) {
  if (total === null) return '–';
  return `${total.isComplete ? '' : 'over '}${COUNT.format(total.plants)}`;
}

/** Reads a form instead of sending it. @param {SubmitEvent} event */
export function readForm(event) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.currentTarget);
  const texts = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form)));
  return { form, texts };
}

/** The day of a time in the zone of the browser, such as 2026-05-01. @param {number} at ms since 1970 */
export function dayOf(at) {
  const day = new Date(at);
  const numbers = [day.getFullYear(), day.getMonth() + 1, day.getDate()];
  return numbers.map(number => String(number).padStart(2, '0')).join('-');
}

/** A text without accents, in lower case. @param {string} text */
export function folded(text) {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
}
