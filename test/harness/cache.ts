import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** A folder of this checkout for files that take long to make. `npm ci` removes it. */
export const CACHE = fileURLToPath(new URL('../node_modules/.cache/plant-store-test', import.meta.url));

/** Creates a folder in the cache atomically, so that two test files can do it at the same time. */
export async function createAtomically(
  folder: string,
  fill: (unfinished: string) => Promise<void>,
): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const unfinished = await mkdtemp(`${folder}-`);
  await fill(unfinished);
  try {
    await rename(unfinished, folder);
  } catch (error) {
    // Another process was faster.
    if (!existsSync(folder)) throw error;
    await rm(unfinished, { recursive: true });
  }
}
