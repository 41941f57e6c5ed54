import { hash } from 'node:crypto';

/** New in each run, unless PLANT_STORE_TEST_SEED is set. A test that uses the seed prints it. */
export const SEED = Number(process.env.PLANT_STORE_TEST_SEED ?? Date.now() % 1_000_000);

const BITS_32 = 2 ** 32;
const BITS_21 = 2 ** 21;

/**
 * A generator of the kind splitmix: a counter, whose bits are mixed. Simulations draw millions.
 *
 * @returns a function that draws integers from 0 to `below - 1`, the same for the same seed
 */
export function seededRandom(seed: number): (below: number) => number {
  // Hashed, so that neighbouring seeds draw other numbers.
  let state = Number.parseInt(hash('sha256', `${seed}`, 'hex').slice(0, 8), 16);
  const draw = (): number => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
  return below => (below <= BITS_32 ? draw() % below : (draw() * BITS_21 + (draw() >>> 11)) % below);
}
