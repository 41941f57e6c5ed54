/**
 * Finds the files that a source names as `new URL('./file', import.meta.url)`: programs of threads
 * and files to read. The package and the executable must include them.
 */

/** The program of a thread. */
const PROGRAM = /new URL\(\s*'(?<file>\.[^']*)\.ts',\s*import\.meta\.url,?\s*\)/g;
/** A file to read, as text or as bytes. */
const READ =
  /\b(?:fs\.)?readFileSync\(\s*new URL\(\s*'(?<file>\.[^']+)',\s*import\.meta\.url,?\s*\)(?<asText>,\s*'utf8')?,?\s*\)/g;

/** A file of a package to read, as text. */
const PACKAGE_READ =
  /\breadFileSync\(\s*fileURLToPath\(import\.meta\.resolve\('(?<file>[^'.][^']*)'\)\),\s*'utf8',?\s*\)/g;

/** @returns the relative paths of the files that a source reads */
export function filesRead(source: string): string[] {
  return [...source.matchAll(READ)].map(({ groups }) => groups!.file!);
}

/** @returns the relative paths of the programs of threads in a source, without `.ts` */
export function programsNamed(source: string): string[] {
  return [...source.matchAll(PROGRAM)].map(({ groups }) => groups!.file!);
}

/**
 * Replaces each `readFileSync` of a named file.
 *
 * @param replace returns code, for the relative path and for whether the file is read as text
 */
export function replaceReads(source: string, replace: (file: string, asText: boolean) => string): string {
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

/**
 * Replaces each `readFileSync` of a file of a package.
 *
 * @param replace returns code, for the specifier of the file
 */
export function replacePackageReads(source: string, replace: (specifier: string) => string): string {
  return source.replace(PACKAGE_READ, (...[, specifier]) => replace(specifier));
}
