import { numberOf, type Query } from './revision-rows.ts';

/** The damage of a store that was found last. */
export interface DamageRecord {
  /** Milliseconds since 1970 UTC. */
  metAt: number;
  /** In words, for the operator, such as `a create`. A command adds the first fault. */
  metBy: string;
}

/** @returns undefined if the store has no record of damage */
export async function knownDamage(query: Query): Promise<DamageRecord | undefined> {
  const [row] = await query('SELECT met_at, met_by FROM known_damage', []);
  if (row === undefined) return undefined;
  const [metAt, metBy] = row;
  return { metAt: numberOf(metAt), metBy: String(metBy) };
}
