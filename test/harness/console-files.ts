import assert from 'node:assert/strict';
import type { ServeProcess } from './program.ts';

/** Loads the console of a process, and all files that its files name, as a browser does. */
export async function assertConsoleFiles(service: ServeProcess): Promise<void> {
  const { ops } = service
    .logged()
    .map(line => JSON.parse(line))
    .find(line => line.ops !== undefined);
  const files = new Set(['']);
  // Also visits those that it adds.
  for (const file of files) {
    const response = await fetch(`http://127.0.0.1:${ops.port}/console/${file}`);
    assert.equal(response.status, 200, file);
    const text = await response.text();
    for (const [, named] of text.matchAll(/["']\.\/([\w-]+\.(?:css|js))["']/g)) files.add(named!);
  }
  for (const file of ['app.css', 'preact.js', 'uplot.js', 'uplot.css']) assert.ok(files.has(file), file);
}
