import type { NewPlant } from '../../src/core/contract/plant.ts';

/** 2^64 divided by the golden ratio. It is odd, so its first 2^64 multiples differ in 64 bits. */
const STRIDE = 0x9e3779b97f4a7c15n;

/** Plants with different ids from the whole range of int64. */
export function wholeRangePlants(count: number): NewPlant[] {
  return Array.from({ length: count }, (_, index) => {
    const id = BigInt.asIntN(64, BigInt(index) * STRIDE);
    const name = `Árbol ${index} 🌳 "${index % 97}"`;
    return index % 3 === 0 ? { id, name } : { id, name, tag: index % 3 === 1 ? '' : `tag ${index % 50}` };
  });
}
