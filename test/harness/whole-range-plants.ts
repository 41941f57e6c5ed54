import { ID_MAX, ID_MIN } from '../../src/contract/limits.ts';
import type { NewPlant } from '../../src/contract/plant.ts';

const EDGES = [
  ID_MIN,
  ID_MIN + 1n,
  -1n,
  0n,
  2n ** 31n,
  2n ** 53n + 1n,
  -(2n ** 53n) - 1n,
  ID_MAX - 1n,
  ID_MAX,
];
/** 2^64 divided by the golden ratio. It is odd, so its first 2^64 multiples differ in 64 bits. */
const STRIDE = 0x9e3779b97f4a7c15n;

/** Plants with different ids from the whole range of int64, including both ends. */
export function wholeRangePlants(count: number): NewPlant[] {
  const ids = new Set(EDGES);
  for (let step = 1n; ids.size < count; step++) ids.add(BigInt.asIntN(64, step * STRIDE));
  return [...ids].slice(0, count).map((id, index) => {
    const name = `Árbol ${index} 🌳 "${index % 97}"`;
    return index % 3 === 0 ? { id, name } : { id, name, tag: index % 3 === 1 ? '' : `tag ${index % 50}` };
  });
}
