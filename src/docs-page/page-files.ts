import { readFileSync } from 'node:fs';

/** What the page brings along: its style, and the script of its form. Read once, when the service is loaded. */
export const PAGE_STYLE = [
  readFileSync(new URL('./browser/base.css', import.meta.url), 'utf8'),
  readFileSync(new URL('./browser/layout.css', import.meta.url), 'utf8'),
  readFileSync(new URL('./browser/form.css', import.meta.url), 'utf8'),
  readFileSync(new URL('./browser/reference.css', import.meta.url), 'utf8'),
].join('\n');
export const PAGE_SCRIPT = readFileSync(new URL('./browser/page.js', import.meta.url), 'utf8');
