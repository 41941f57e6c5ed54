// The screen Store: facts of the store, and the settings.
import { Facts, Problem, Table } from './display.js';
import { html } from './preact.js';
import { request, useLoad } from './requests.js';

const INTERVAL_MS = 10_000;

export function Store() {
  const { content, error } = useLoad(() => request('store'), INTERVAL_MS);
  if (content === undefined) return html`<${Problem} what="Not loaded" error=${error} />`;
  /**
   * @type {{ rows: import('./display.js').FactRow[],
   *   settings: [name: string, value: string, source: string][] }}
   */
  const { rows, settings } = content;
  return html`
    <${Problem} what="Not updated" error=${error} />
    <${Facts} rows=${rows} />
    <h2>Settings</h2>
    <${Table} caption="Settings and where each is from" columns=${['Setting', 'Value', 'Source']} rows=${settings.map(([name, value, source]) => ({ key: name, cells: [html`<code>${name}</code>`, html`<span class="text">${value}</span>`, source] }))} />`;
}
