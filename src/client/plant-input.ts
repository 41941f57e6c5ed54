import { ID_RULE } from '../contract/errors.ts';
import { isInt64 } from '../contract/int64.ts';
import { checkNamedPlant, type NewPlant } from '../contract/plant.ts';
import { PlantStoreError } from './plant-store-error.ts';

/** A plant as a program has it. */
export interface PlantInput {
  /** A bigint, an integer that a number holds exactly (up to 2^53 - 1), or decimal digits; from -2^63 to 2^63 - 1. */
  id: bigint | number | string;
  name: string;
  tag?: string | undefined;
}

/** @throws {PlantStoreError} that names every fault, of what the service would have to refuse */
export function newPlantOf(input: PlantInput): NewPlant {
  // What a program in plain JavaScript gives may be nothing at all.
  const { id, name, tag } = Object(input) as PlantInput;
  const exactId = exactIdOf(id);
  const { plant, message } =
    typeof exactId === 'bigint'
      ? checkNamedPlant(exactId, name, tag, [])
      : checkNamedPlant(undefined, name, tag, [exactId]);
  if (plant !== undefined) return plant;
  throw new PlantStoreError(message, { error: 40002, canRetry: false });
}

/** @returns the id, or what is wrong with it */
function exactIdOf(id: unknown): bigint | string {
  if (id === undefined) return 'id is required';
  if (typeof id === 'number') {
    if (Number.isSafeInteger(id)) return BigInt(id);
    if (Number.isInteger(id))
      return 'id is a number that may have lost digits already (beyond 2^53 - 1); give it as a bigint or as text';
  }
  if (typeof id === 'bigint' || (typeof id === 'string' && /^-?[0-9]{1,19}$/.test(id))) {
    const exactId = BigInt(id);
    if (isInt64(exactId)) return exactId;
  }
  return `id must be ${ID_RULE}`;
}
