/**
 * Compiles the sources to `dist` for both npm packages: the service, and the client with its types.
 * Node runs no TypeScript below node_modules. `npm pack` runs this program first.
 *
 *   npm run build
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesRead, replacePrograms } from './named-files.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BUILT = join(ROOT, 'dist');
const CLIENT = join(ROOT, 'packages', 'client');
const COMPILER = fileURLToPath(new URL('./compiler/node_modules/typescript/bin/tsc', import.meta.url));

rmSync(BUILT, { recursive: true, force: true });
execFileSync(process.execPath, [COMPILER, '-p', join(ROOT, 'tsconfig.build.json')], { stdio: 'inherit' });
for (const file of globSync('**/*.js', { cwd: BUILT })) copyNamedFiles(file);

rmSync(join(CLIENT, 'dist'), { recursive: true, force: true });
for (const folder of ['client', 'core/contract'])
  cpSync(join(BUILT, 'src', folder), join(CLIENT, 'dist', folder), { recursive: true });
// npm adds the file LICENSE of a package folder to the package.
cpSync(join(ROOT, 'LICENSE'), join(CLIENT, 'LICENSE'));

/** The compiler follows only imports, so this copies the source files that a built file reads. */
function copyNamedFiles(file: string): void {
  const code = readFileSync(join(BUILT, file), 'utf8');
  for (const named of filesRead(code).filter(each => each.startsWith('.'))) {
    cpSync(resolve(ROOT, dirname(file), named), resolve(BUILT, dirname(file), named));
  }
  writeFileSync(
    join(BUILT, file),
    replacePrograms(code, named => `new URL('${named}.js', import.meta.url)`),
  );
}
