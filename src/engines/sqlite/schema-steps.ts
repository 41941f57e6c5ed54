import { readFileSync } from 'node:fs';

/** Each store applies a step once, so a released step is never edited. */
export const SCHEMA_STEPS = [readFileSync(new URL('./schema/001-store.sql', import.meta.url), 'utf8')];
