// The screen Store: facts of the store, and the settings.
import { Facts, Table } from './display.js';
import { html } from './preact.js';
import { request, useLoad } from './requests.js';

const INTERVAL_MS = 10_000;
const SETTING_COLUMNS = {
  Setting: (/** @type {string[]} */ [name]) => html`<code>${name}</code>`,
  Value: (/** @type {string[]} */ [, value]) => html`<span class="text">${value}</span>`,
  Source: (/** @type {string[]} */ [, , source]) => source,
};

export function Store() {
  const { content, problem } = useLoad(() => request('store'), INTERVAL_MS);
  if (content === undefined) return problem;
  return html`${problem}
    <${Facts} rows=${content.rows} />
    <h2>Settings</h2>
    <${Table} name="Settings and where each is from" columns=${SETTING_COLUMNS} rows=${content.settings} />`;
}
