import type { PlantReader } from '../store/plant-store.ts';

/**
 * Tells the label of a token by its id; the id itself stands for a token that is not in this store.
 *
 * To be asked behind the first revision, not before: tokens are never deleted, so that every token of the revisions
 * is known by then, also one that was made an instant ago.
 */
export async function tokenLabels(reader: PlantReader): Promise<(tokenId: number) => string> {
  const tokens = await reader.tokens();
  const labels = new Map(tokens.map(({ id, label }) => [id, label]));
  return tokenId => labels.get(tokenId) ?? String(tokenId);
}
