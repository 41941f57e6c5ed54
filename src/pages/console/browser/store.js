// The screen Store: facts of the store, and the settings.
import { COUNT, Facts, Table } from './display.js';
import { html } from './preact.js';
import { request, useLoad } from './requests.js';

const INTERVAL_MS = 10_000;
const MEBIBYTE = 1024 * 1024;
const NOT_SET = 'not set';

/** @typedef {[name: string, value: string, source: string]} Setting */

const SETTING_COLUMNS = {
  Setting: (/** @type {Setting} */ [name]) => html`<code>${name}</code>`,
  Value: (/** @type {Setting} */ [, value]) => valueText(value),
  Source: (/** @type {Setting} */ [, , source]) => source,
};

/** A number of bytes in a unit that people read; the exact number is its title. @param {string} value */
function valueText(value) {
  const [, bytes = ''] = /^([0-9]+) bytes$/.exec(value) ?? [];
  const mebibytes = Number(bytes) / MEBIBYTE;
  if (bytes === '' || !Number.isInteger(mebibytes)) return html`<span class="text">${value}</span>`;
  return html`<span title=${`${COUNT.format(Number(bytes))} bytes`}>${mebibytes} MB</span>`;
}

export function Store() {
  const { content, problem } = useLoad(() => request('store'), INTERVAL_MS);
  if (content === undefined) return problem;
  /** @type {Setting[]} */
  const settings = content.settings;
  const changed = settings.filter(([, , source]) => source !== 'default');
  const defaults = settings.filter(([, value, source]) => source === 'default' && value !== NOT_SET);
  const unset = settings.filter(([, value, source]) => source === 'default' && value === NOT_SET);
  const table = (/** @type {string} */ name, /** @type {Setting[]} */ rows) =>
    rows.length > 0 &&
    html`<div class="settings"><${Table} name=${name} columns=${SETTING_COLUMNS} rows=${rows} /></div>`;
  return html`${problem}
    <${Facts} rows=${content.rows} hasCommands=${true} />
    <h2>Settings</h2>
    ${changed.length === 0 && html`<p class="note">Nothing was changed: all settings are the defaults.</p>`}
    ${table('Settings and where each is from, the changed ones first', [...changed, ...defaults])}
    ${unset.length > 0 && html`<details class="fold"><summary>${unset.length} settings are not set</summary>${table('Settings that are not set', unset)}</details>`}`;
}
