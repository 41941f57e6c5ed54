#!/usr/bin/env node
import { existsSync } from 'node:fs';
// Not a named import: an older Node lacks the function and would fail before the message below.
import module from 'node:module';
import { fileURLToPath } from 'node:url';

// Node opens a debugger port on SIGUSR1 unless the program listens for it. `npm start` and the
// executable also pass --disable-sigusr1, which works from the first moment. The first line of this
// file cannot pass it. BusyBox has no `env -S`, and an older Node would end with "bad option".
process.on('SIGUSR1', () => {});
// An older Node would end with a syntax error in the TypeScript sources.
const [major] = process.versions.node.split('.');
if (Number(major) < 26) {
  console.error(
    `plant-store needs Node 26 or later; this is Node ${process.versions.node}. ` +
      'Install Node 26, or use the executable, which contains Node. In a checkout, `npm ci` installs Node 26, and ' +
      '`npx plant-store` uses it in the folder of the checkout.',
  );
  process.exit(1);
}
// Node caches compiled code, which halves the time of the next start. If Node cannot write to the
// folder, the program runs without the cache. A shared folder such as /tmp would be unsafe: any
// user could put code there. The variable is for the threads, which read nothing else.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(
  new URL('../node_modules/.cache/plant-store', import.meta.url),
);
module.enableCompileCache(process.env.NODE_COMPILE_CACHE);
// A checkout runs the TypeScript sources. The package contains only the build in dist.
const sources = new URL('../src/main.ts', import.meta.url);
const built = new URL('../dist/src/main.js', import.meta.url);
const { main } = await import((existsSync(sources) ? sources : built).href);
await main(process.argv);
