import { readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type OnLoadResult, type Plugin } from 'esbuild';
import { programsNamed, replacePrograms, replaceReads } from './named-files.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SOURCES = join(ROOT, 'src');

/** The whole program in one piece of code. */
export interface ProgramBundle {
  /** An ES module that imports modules of Node alone. */
  code: string;
  /** The folders of the packages that are in it, from the root of the repository, in the order of names. */
  packages: string[];
}

/** Puts the command line, the packages that it imports, its threads and the files that it reads into one module. */
export async function bundleProgram(): Promise<ProgramBundle> {
  const program = `import { main } from './cli/main.ts';\nawait main(process.argv);\n`;
  const packages = new Set<string>();
  const stdin = { contents: program, loader: 'ts', resolveDir: SOURCES, sourcefile: 'program.ts' } as const;
  const code = await bundle({ stdin }, packages);
  return { code, packages: [...packages].sort() };
}

/**
 * @param options what to begin with
 * @param packages gets the folders of those that are in it
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
    // An executable takes part in no node_modules: it loads nothing from the place where it lies.
    banner: { js: 'const require = process.getBuiltinModule;' },
    charset: 'utf8',
    // The names of files stand in the code: as the repository has them, wherever its packages lie.
    preserveSymlinks: true,
    // Their licences go beside the executable, in full.
    legalComments: 'none',
    // What `pg` takes instead of itself where a program asks for it, which this one does not.
    external: ['pg-native'],
    plugins: [namedFiles(packages)],
    metafile: true,
    write: false,
    logLevel: 'warning',
  });
  for (const input of Object.keys(metafile.inputs)) {
    const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
    if (folder !== undefined) packages.add(folder);
  }
  return outputFiles[0]!.text;
}

/** Takes along what the sources name as `new URL('./file', import.meta.url)`. */
function namedFiles(packages: Set<string>): Plugin {
  return {
    name: 'named files',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, async ({ path }) =>
        path.startsWith(SOURCES) ? await withNamedFiles(path, packages) : undefined,
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
  const contents = replaceReads(withPrograms, (named, asText) => {
    const bytes = readFileSync(resolve(dirname(path), named));
    return asText ? JSON.stringify(bytes.toString()) : `Buffer.from('${bytes.toString('base64')}', 'base64')`;
  });
  if (contents.includes('import.meta.url')) {
    const text = "name a file as new URL('./file', import.meta.url), within readFileSync or new Worker";
    return { errors: [{ text, location: { file: relative(ROOT, path) } }] };
  }
  // Where there is no Node there is no npx.
  return { contents: contents.replaceAll('npx plant-store', 'plant-store'), loader: 'ts' };
}

/** The program of a thread as an address that holds it, https://nodejs.org/api/worker_threads.html#new-workerfilename-options */
async function threadUrl(file: string, packages: Set<string>): Promise<string> {
  // Stack traces would show the address.
  const footer = { js: `//# sourceURL=${basename(file, '.ts')}.js` };
  const code = await bundle({ entryPoints: [file], footer }, packages);
  return `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`;
}
