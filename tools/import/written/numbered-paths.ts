import path from 'node:path';

/** Yields names for a file that must be new: `x.csv`, then `x-2.csv`, `x-3.csv`, without an end. */
export function* numberedPaths(wanted: string): Generator<string, never, undefined> {
  const { dir, name, ext } = path.parse(wanted);
  yield wanted;
  for (let number = 2; ; number++) yield path.join(dir, `${name}-${number}${ext}`);
}
