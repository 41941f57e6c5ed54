import { readFileSync } from 'node:fs';

/** What the page brings along: its style, and the script of its form. Read once, when the service is loaded. */
export const PAGE_STYLE = readPageFile('page.css');
export const PAGE_SCRIPT = readPageFile('page.js');

function readPageFile(name: string): string {
  return readFileSync(new URL(`browser/${name}`, import.meta.url), 'utf8');
}
