import { readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type OnLoadResult, type Plugin } from 'esbuild';
import { programsNamed, replacePrograms, replaceReads } from './named-files.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SOURCES = ['src', 'tools'].map(folder => join(ROOT, folder, '/'));

export interface ProgramBundle {
  /** The whole program: an ES module that imports only modules of Node. */
  code: string;
  /** The folders of the bundled packages, relative to the root of the repository, sorted. */
  packages: string[];
}

/**
 * Bundles the command line, its packages, its threads and the files that it reads into one module.
 */
export async function bundleProgram(): Promise<ProgramBundle> {
  const program = `import { main } from './main.ts';\nawait main(process.argv);\n`;
  const packages = new Set<string>();
  const stdin = {
    contents: program,
    loader: 'ts',
    resolveDir: join(ROOT, 'src'),
    sourcefile: 'program.ts',
  } as const;
  const code = await bundle({ stdin }, packages);
  return { code, packages: [...packages].sort() };
}

/**
 * @param options the entry point
 * @param packages receives the folders of the bundled packages
 * @returns the module
 */
async function bundle(options: BuildOptions, packages: Set<string>): Promise<string> {
  const { outputFiles, metafile } = await build({
    ...options,
    absWorkingDir: ROOT,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: `node${process.versions.node}`,
    // A bundled `require` gets only modules of Node, never files of a folder beside the executable.
    banner: { js: 'const require = process.getBuiltinModule;' },
    charset: 'utf8',
    // The code contains file names, which otherwise depend on the location of node_modules.
    preserveSymlinks: true,
    // The full licences are in a file beside the executable.
    legalComments: 'none',
    // An optional replacement of `pg`, which this program does not use.
    external: ['pg-native'],
    plugins: [namedFiles(packages)],
    metafile: true,
    write: false,
    logLevel: 'warning',
  });
  for (const input of Object.keys(metafile.inputs)) addPackage(input, packages);
  return outputFiles[0]!.text;
}

/** @param file relative to the root; files outside packages add none */
function addPackage(file: string, packages: Set<string>): void {
  const [folder] = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [];
  if (folder !== undefined) packages.add(folder);
}

/** An esbuild plugin that includes the files which the sources name by URL. */
function namedFiles(packages: Set<string>): Plugin {
  return {
    name: 'named files',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, async ({ path }) =>
        SOURCES.some(each => path.startsWith(each)) ? await withNamedFiles(path, packages) : undefined,
      );
    },
  };
}

async function withNamedFiles(path: string, packages: Set<string>): Promise<OnLoadResult> {
  const source = readFileSync(path, 'utf8');
  const programs = new Map<string, string>();
  for (const named of programsNamed(source))
    programs.set(named, await threadUrl(resolve(dirname(path), `${named}.ts`), packages));
  const withPrograms = replacePrograms(source, named => `new URL('${programs.get(named)}')`);
  const contents = replaceReads(withPrograms, (named, isText) => {
    const isSource = named.startsWith('.');
    const file = isSource ? resolve(dirname(path), named) : fileURLToPath(import.meta.resolve(named));
    addPackage(relative(ROOT, file), packages);
    const bytes = readFileSync(file);
    return isText ? JSON.stringify(bytes.toString()) : `Buffer.from('${bytes.toString('base64')}', 'base64')`;
  });
  if (/import\.meta\.(?:url|resolve)/.test(contents)) {
    const text = 'name files only in the forms of packaging/named-files.ts';
    return { errors: [{ text, location: { file: relative(ROOT, path) } }] };
  }
  // A machine without Node has no npx.
  return { contents: contents.replaceAll('npx plant-store', 'plant-store'), loader: 'ts' };
}

/**
 * Bundles the program of a thread into a data URL,
 * https://nodejs.org/api/worker_threads.html#new-workerfilename-options
 */
async function threadUrl(file: string, packages: Set<string>): Promise<string> {
  // Otherwise stack traces would contain the whole URL.
  const footer = { js: `//# sourceURL=${basename(file, '.ts')}.js` };
  const code = await bundle({ entryPoints: [file], footer }, packages);
  return `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`;
}
