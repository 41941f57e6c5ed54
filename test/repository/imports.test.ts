import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** A row of the table of folders in ARCHITECTURE.md that says what its files may import. */
interface Part {
  name: string;
  mayImport: string[];
}

function partsOf(document: string): Part[] {
  const [, section = ''] = document.split('\n## Folders\n');
  const rows = [...section.matchAll(/^\| `([^`]+)` \|.*\| ([^|]*) \|$/gm)];
  return rows
    .filter(([, , mayImport]) => mayImport !== '')
    .map(([, name, mayImport]) => ({
      name: name!,
      mayImport: [...mayImport!.matchAll(/`([^`]+)`/g)].map(([, short]) => fromRoot(short!)),
    }));
}

/** The table leaves out `src/`. */
function fromRoot(name: string): string {
  return existsSync(path.join(ROOT, 'src', name.replace('/*.ts', ''))) ? `src/${name}` : name;
}

const isBelow = (file: string, folder: string): boolean => file === folder || file.startsWith(`${folder}/`);

const PARTS = partsOf(readFileSync(path.join(ROOT, 'ARCHITECTURE.md'), 'utf8'));

/** The part with the longest name that has the file. */
function partOf(file: string): Part | undefined {
  return PARTS.filter(({ name }) => isBelow(file, name))
    .toSorted((a, b) => b.name.length - a.name.length)
    .at(0);
}

function mayImport(part: Part, used: string): boolean {
  const usedPart = partOf(used)?.name ?? used;
  return (
    usedPart === part.name ||
    part.mayImport.some(name =>
      name.endsWith('/*.ts')
        ? path.posix.dirname(used) === path.posix.dirname(name)
        : isBelow(usedPart, name),
    )
  );
}

test('each folder has a row in ARCHITECTURE.md, and imports only what the row allows', () => {
  const findings = globSync('{bench,bin,deploy,examples,faults,packaging,src,test,tools}/**/*.{js,mjs,ts}', {
    cwd: ROOT,
    exclude: file => file.includes('node_modules'),
  })
    .map(file => file.replaceAll(path.sep, '/'))
    .flatMap(file => {
      const part = partOf(file);
      if (part === undefined) return [`${file} has no row`];
      const imports = readFileSync(path.join(ROOT, file), 'utf8').matchAll(
        /^(?:\} from|import|import .*? from|export .*? from|.*\bimport\() ?'(\.[^']+)'/gm,
      );
      return [...imports]
        .map(([, name]) => path.posix.join(path.posix.dirname(file), name!))
        .filter(used => !used.endsWith('.json') && !mayImport(part, used))
        .map(used => `${file} uses ${used}`);
    });
  assert.deepEqual(findings, []);
});
