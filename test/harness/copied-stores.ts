import assert from 'node:assert/strict';
import type { PlantRevision } from '../../src/core/commit/plant-revision.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';
import type { StoredToken } from '../../src/core/tokens/stored-token.ts';
import { hashToken, makeToken } from '../../src/core/tokens/token.ts';
import { openReader } from './open-store.ts';
import { plantWrite } from './plant-write.ts';
import type { Finished } from './program.ts';
import { openStore } from './store-under-test.ts';

export type Tokens = Record<'valid' | 'expired' | 'revoked', string>;

/** Plants with ids, names and tags that are hard to store, in the order of sending. */
export const HARD_PLANTS: NewPlant[] = [
  { id: 2n ** 63n - 1n, name: 'the last' },
  { id: -(2n ** 63n), name: 'the first', tag: '' },
  { id: 2n ** 53n, name: 'a double' },
  { id: 2n ** 53n + 1n, name: 'no double', tag: 'exact' },
  { id: 0n, name: '' },
  { id: -1n, name: 'Ácer 🌳 "quoted" \\ \r\n\t\u2028 de\u0301composed', tag: 'null' },
  { id: 0n, name: '', tag: '' },
  { id: 0n, name: '', tag: 'NULL' },
  { id: 0n, name: '' },
  ...Array.from({ length: 12 }, (_, revision) => ({ id: 7n, name: `revision ${revision}` })),
];

/** Each is as large as a request may be. Together they are longer than a page of text. */
const LARGE_PLANTS = Array.from({ length: 12 }, (_, index): NewPlant => {
  const name = `${index}ü`.repeat(300_000);
  return { id: BigInt(1_000 + index), name, tag: name.slice(0, 9) };
});

/** Makes a store with plants and tokens of every kind. */
export async function fillStore(
  database: string,
  plants: readonly NewPlant[] = [...HARD_PLANTS, ...LARGE_PLANTS],
): Promise<Tokens> {
  await using store = await openStore(database);
  const tokens: Tokens = { valid: makeToken(), expired: makeToken(), revoked: makeToken() };
  for (const [label, token] of Object.entries(tokens)) {
    const expiresAt = label === 'expired' ? 1_000_000 : label === 'valid' ? 4_102_444_800_000 : null;
    await store.tokenTable.createToken({ hash: hashToken(token), label, createdAt: 5_000, expiresAt });
  }
  await store.tokenTable.revokeToken('revoked', 6_000);
  await store.tokenTable.recordTokenUse([1], '2026-01-01');
  const batchPlants = 1_000;
  for (let start = 0; start < plants.length; start += batchPlants) {
    const batch = plants.slice(start, start + batchPlants);
    await store.commit(batch.map((plant, index) => plantWrite(plant, (index % 3) + 1)));
  }
  return tokens;
}

export function manyPlants(count: number): NewPlant[] {
  return Array.from({ length: count }, (_, index) => ({ id: BigInt(index) * 3n, name: `plant ${index}` }));
}

/** Asserts that both stores have the same digest. @returns the digest */
export function equalDigest({ exitCode, stdout, stderr }: Finished): string {
  assert.equal(exitCode, 0, stdout + stderr);
  const [, source, target] =
    /^source(?: without these plants)?: (.*)\ntarget: (.*)\nequal$/m.exec(stdout) ?? [];
  assert.ok(source !== undefined && source === target, stdout);
  return /sha256:([0-9a-f]{64})$/.exec(source)![1]!;
}

export function copiedRevisions({ stdout, stderr }: Finished): number {
  const [, count] = /^copied ([0-9,]+) revisions? and [0-9,]+ tokens? in /m.exec(stdout) ?? [];
  assert.ok(count !== undefined, stdout + stderr);
  return Number(count.replaceAll(',', ''));
}

/** The content of a store, without the numbers of changes, which differ in each store. */
export async function rowsOf(
  database: string,
): Promise<{ revisions: PlantRevision[]; tokens: Omit<StoredToken, 'changeNumber'>[] }> {
  await using reader = await openReader(database);
  const revisions = await Array.fromAsync(reader.revisions());
  const tokens = (await reader.tokens()).map(({ changeNumber: _, ...rest }) => rest);
  return { revisions, tokens };
}
