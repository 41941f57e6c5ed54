import type { PlantReader } from '../store/plant-store.ts';

/**
 * Call it after the first revision was read. Tokens are never deleted, so the list then contains
 * every token of the revisions, also one that was made a moment before.
 *
 * @returns a function from token id to label; a token that is not in this store gets its id as text
 */
export async function tokenLabels(reader: PlantReader): Promise<(tokenId: number) => string> {
  const tokens = await reader.tokens();
  const labels = new Map(tokens.map(({ id, label }) => [id, label]));
  return tokenId => labels.get(tokenId) ?? String(tokenId);
}
