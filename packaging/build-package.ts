/**
 * Builds what the npm package has in place of the sources, which Node does not run below node_modules: dist, with the types
 * of what it exports. `npm pack` does it first.
 *
 *   npm run build
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesRead, replacePrograms } from './named-files.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SOURCES = join(ROOT, 'src');
const BUILT = join(ROOT, 'dist');
const COMPILER = fileURLToPath(new URL('../test/node_modules/typescript/bin/tsc', import.meta.url));

rmSync(BUILT, { recursive: true, force: true });
execFileSync(process.execPath, [COMPILER, '-p', join(ROOT, 'tsconfig.build.json')], { stdio: 'inherit' });
for (const file of globSync('**/*.js', { cwd: BUILT })) bringAlong(file);

/** The compiler follows imports alone; a built file may name others. */
function bringAlong(file: string): void {
  const code = readFileSync(join(BUILT, file), 'utf8');
  for (const named of filesRead(code)) {
    const from = resolve(SOURCES, dirname(file), named);
    // The package has package.json where the sources have it.
    if (!relative(SOURCES, from).startsWith('..')) cpSync(from, resolve(BUILT, dirname(file), named));
  }
  writeFileSync(
    join(BUILT, file),
    replacePrograms(code, named => `new URL('${named}.js', import.meta.url)`),
  );
}
