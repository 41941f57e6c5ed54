import { ID_RULE } from '../core/contract/errors.ts';
import { isInt64 } from '../core/contract/int64.ts';
import { type NewPlant, validateNamedPlant } from '../core/contract/plant.ts';
import { PlantStoreError } from './plant-store-error.ts';

/** A plant to send. */
export interface PlantInput {
  /** From -2^63 to 2^63 - 1: a bigint, decimal digits, or a number up to 2^53 - 1 (exact). */
  id: bigint | number | string;
  name: string;
  tag?: string | undefined;
}

/** @throws {PlantStoreError} that lists every fault of an input that the service would reject */
export function newPlantOf(input: PlantInput): NewPlant {
  // Plain JavaScript programs may pass undefined or null.
  const { id, name, tag } = Object(input) as PlantInput;
  const exactId = exactIdOf(id);
  const { plant, message } =
    typeof exactId === 'bigint'
      ? validateNamedPlant(exactId, name, tag, [])
      : validateNamedPlant(undefined, name, tag, [exactId]);
  if (plant !== undefined) return plant;
  throw new PlantStoreError(message, { error: 40002, canRetry: false });
}

/** @returns the id, or a description of its fault */
function exactIdOf(id: unknown): bigint | string {
  if (id === undefined) return 'id is required';
  if (typeof id === 'number') {
    if (Number.isSafeInteger(id)) return BigInt(id);
    if (Number.isInteger(id))
      return 'id is a number that may have lost digits already (beyond 2^53 - 1); pass a bigint or text';
  }
  if (typeof id === 'bigint' || (typeof id === 'string' && /^-?[0-9]{1,19}$/.test(id))) {
    const exactId = BigInt(id);
    if (isInt64(exactId)) return exactId;
  }
  return `id must be ${ID_RULE}`;
}
