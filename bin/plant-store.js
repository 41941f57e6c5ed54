#!/usr/bin/env node
import { existsSync } from 'node:fs';
// The module itself and not a named import: an older Node lacks the function, and would fail before the message below.
import module from 'node:module';
import { fileURLToPath } from 'node:url';

// Node opens a debugger port on SIGUSR1 unless the program listens for it. `npm start` and the executable also pass
// --disable-sigusr1, which works from the first moment. The first line of this file cannot pass it: BusyBox has no `env -S`,
// and an older Node would end with "bad option" instead of the message below.
process.on('SIGUSR1', () => {});
// An older Node cannot read the TypeScript behind this file; say so in a line instead of failing on its syntax.
const [major] = process.versions.node.split('.');
if (Number(major) < 26) {
  console.error(
    `plant-store needs Node 26 or later and this is Node ${process.versions.node}. ` +
      'Install that, or use the executable, which holds its own. In a checkout, `npm ci` brings it, and ' +
      '`npx plant-store` uses it.',
  );
  process.exit(1);
}
// Node keeps what it has compiled, so that the next start takes half the time; where the folder cannot be written, it goes
// without. Never a folder that is shared, as the temporary one: whoever can write there could plant code. The variable is
// for the threads, which go by it alone.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(
  new URL('../node_modules/.cache/plant-store', import.meta.url),
);
module.enableCompileCache(process.env.NODE_COMPILE_CACHE);
// A checkout runs its sources as they are; the package has in dist what was built from them.
const sources = new URL('../src/cli/main.ts', import.meta.url);
const built = new URL('../dist/cli/main.js', import.meta.url);
const { main } = await import((existsSync(sources) ? sources : built).href);
await main(process.argv);
