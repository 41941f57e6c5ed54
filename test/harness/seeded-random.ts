import { hash } from 'node:crypto';

/** A new one for each run, unless PLANT_STORE_TEST_SEED asks for one again. A test that uses it prints it. */
export const SEED = Number(process.env.PLANT_STORE_TEST_SEED ?? Date.now() % 1_000_000);

/**
 * Numbers that look random and are the same again for the same seed.
 *
 * @returns gives the next whole number from 0 to below
 */
export function seededRandom(seed: number): (below: number) => number {
  let drawn = 0;
  return below => Number.parseInt(hash('sha256', `${seed} ${++drawn}`, 'hex').slice(0, 12), 16) % below;
}
