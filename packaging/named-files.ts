/**
 * How a source names a file beside it: `new URL('./file', import.meta.url)`, for a thread's program and for what is read.
 * Whatever is built from the sources finds by this one form what it must bring along.
 */

/** The program of a thread. */
const PROGRAM = /new URL\(\s*'(?<file>\.[^']*)\.ts',\s*import\.meta\.url,?\s*\)/g;
/** A file that is read, as text or as bytes. */
const READ =
  /\breadFileSync\(\s*new URL\(\s*'(?<file>\.[^']+)',\s*import\.meta\.url,?\s*\)(?<asText>,\s*'utf8')?,?\s*\)/g;

/** @returns the files that a source reads, as it names them */
export function filesRead(source: string): string[] {
  return [...source.matchAll(READ)].map(({ groups }) => groups!.file!);
}

/** @returns the programs of threads that a source names, as it names them, without `.ts` */
export function programsNamed(source: string): string[] {
  return [...source.matchAll(PROGRAM)].map(({ groups }) => groups!.file!);
}

/**
 * Puts something else in place of each `readFileSync` of a named file.
 *
 * @param replace gives it, as code, for the file as the source names it, and for whether its text or its bytes are read
 */
export function replaceReads(source: string, replace: (file: string, asText: boolean) => string): string {
  return source.replace(READ, (...[, file, asText]) => replace(file, asText !== undefined));
}

/**
 * Puts something else in place of each URL of a thread's program.
 *
 * @param replace gives it, as code, for the file as the source names it, without `.ts`
 */
export function replacePrograms(source: string, replace: (file: string) => string): string {
  return source.replace(PROGRAM, (...[, file]) => replace(file));
}
