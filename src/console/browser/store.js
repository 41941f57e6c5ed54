// The screen Store.
import { Problem, Table, Text, Time } from './display.js';
import { html } from './preact.js';
import { request, useLoad } from './requests.js';

const INTERVAL_MS = 10_000;

export function Store() {
  const { content, error } = useLoad(() => request('store'), INTERVAL_MS);
  if (content === undefined) return html`<${Problem} what="Not loaded" error=${error} />`;
  /**
   * @type {{ rows: [label: string, value: string][], warnings: string[],
   *   runs: { command: string, endedAt: number, result: string }[],
   *   settings: [name: string, value: string, source: string][] }}
   */
  const { rows, runs, warnings, settings } = content;
  return html`
    <${Problem} what="Not updated" error=${error} />
    ${
      warnings.length === 0
        ? html`<p class="verdict" data-state="good">The store has no warnings.</p>`
        : html`<ul class="verdict" data-state="warning" aria-label="Warnings">${warnings.map(each => html`<li>${each}</li>`)}</ul>`
    }
    <dl class="rows">${rows.map(([label, value]) => html`<div key=${label}><dt>${label}</dt><dd>${value}</dd></div>`)}
      ${runs.map(({ command, endedAt, result }) => html`<div key=${command}><dt>Last ${command}</dt><dd><${Time} at=${endedAt} />: <${Text} text=${result} /></dd></div>`)}</dl>
    <h2>Settings</h2>
    <${Table} caption="Settings and where each is from" columns=${['Setting', 'Value', 'Source']} rows=${settings.map(([name, value, source]) => ({ key: name, cells: [html`<code>${name}</code>`, html`<span class="text">${value}</span>`, source] }))} />`;
}
