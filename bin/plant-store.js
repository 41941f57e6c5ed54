#!/usr/bin/env node
// An older Node cannot read the TypeScript behind this file; say so in a line instead of failing on its syntax.
const [major] = process.versions.node.split('.');
if (Number(major) < 26) {
  console.error(
    `plant-store needs Node 26 or later and this is Node ${process.versions.node}. ` +
      'In a checkout, `npm ci` brings that Node, and `npx plant-store` uses it.',
  );
  process.exit(1);
}
const { main } = await import('../src/cli/main.ts');
await main(process.argv);
