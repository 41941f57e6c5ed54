import { readFileSync } from 'node:fs';

/** What the page brings along: its style, and the script of its form. Read once, when the service is loaded. */
export const PAGE_STYLE = readFileSync(new URL('./browser/page.css', import.meta.url), 'utf8');
export const PAGE_SCRIPT = readFileSync(new URL('./browser/page.js', import.meta.url), 'utf8');
