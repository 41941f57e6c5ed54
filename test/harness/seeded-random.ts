import { hash } from 'node:crypto';

/** New in each run, unless PLANT_STORE_TEST_SEED is set. A test that uses the seed prints it. */
export const SEED = Number(process.env.PLANT_STORE_TEST_SEED ?? Date.now() % 1_000_000);

/** @returns a function that draws integers from 0 to `below - 1`, the same for the same seed */
export function seededRandom(seed: number): (below: number) => number {
  let drawn = 0;
  return below => Number.parseInt(hash('sha256', `${seed} ${++drawn}`, 'hex').slice(0, 12), 16) % below;
}
