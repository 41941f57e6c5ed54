import { numberOf, type Query } from './table-access.ts';

/** The damage of a store that was found last. */
export interface DamageRecord {
  /** Milliseconds since 1970 UTC. */
  foundAt: number;
  /** In words, for the operator, such as `a create`. A command adds the first fault. */
  foundBy: string;
}

/** @returns undefined if the store has no record of damage */
export async function knownDamage(query: Query): Promise<DamageRecord | undefined> {
  const [row] = await query('SELECT found_at, found_by FROM known_damage', []);
  if (row === undefined) return undefined;
  const [foundAt, foundBy] = row;
  return { foundAt: numberOf(foundAt), foundBy: String(foundBy) };
}
