/**
 * Finds the files that a source names by URL. The npm package and the executable must include them.
 * A source names them in three forms:
 *
 * - `new URL('./thread.ts', import.meta.url)`: the program of a thread.
 * - `readFileSync(new URL('./file', import.meta.url))`: a file of the sources.
 * - `readFileSync(new URL(import.meta.resolve('package/file')))`: a file of an npm package.
 *
 * A read may have the argument `'utf8'`.
 */

const PROGRAM = /new URL\(\s*'(?<file>\.[^']*)\.ts',\s*import\.meta\.url,?\s*\)/g;
const READ =
  /\b(?:fs\.)?readFileSync\(\s*new URL\(\s*(?:import\.meta\.resolve\()?'(?<file>[^']+)'(?:\)|,\s*import\.meta\.url),?\s*\)(?<asText>,\s*'utf8')?,?\s*\)/g;

/** @returns the files that a source reads: relative paths, and names of files of packages */
export function filesRead(source: string): string[] {
  return [...source.matchAll(READ)].map(({ groups }) => groups!.file!);
}

/** @returns the relative paths of the programs of threads in a source, without `.ts` */
export function programsNamed(source: string): string[] {
  return [...source.matchAll(PROGRAM)].map(({ groups }) => groups!.file!);
}

/**
 * Replaces each read of a file.
 *
 * @param replace returns code, for the file as in {@link filesRead}, and for whether it is text
 */
export function replaceReads(source: string, replace: (file: string, isText: boolean) => string): string {
  return source.replace(READ, (...[, file, asText]) => replace(file, asText !== undefined));
}

/**
 * Replaces each URL of a thread's program.
 *
 * @param replace returns code, for the relative path without `.ts`
 */
export function replacePrograms(source: string, replace: (file: string) => string): string {
  return source.replace(PROGRAM, (...[, file]) => replace(file));
}
