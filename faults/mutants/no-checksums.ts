/**
 * A mutant of both stores: it takes every revision that it reads for the one that was written.
 * `node --import` loads it before the program, on each of its threads.
 */
import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';

const CHECK = /return stored\.checksum === .*;/;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith('/src/core/commit/checksum.ts')) return loaded;
    const source = String(loaded.source);
    assert.match(source, CHECK);
    return { ...loaded, source: source.replace(CHECK, 'return true;') };
  },
});
