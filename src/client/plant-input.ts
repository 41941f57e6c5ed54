import { ERRORS, ID_RULE } from '../core/contract/errors.ts';
import { isInt64 } from '../core/contract/int64.ts';
import { type IdReading, type NewPlant, validateNewPlant } from '../core/contract/plant.ts';
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
  const reading = validateNewPlant(readId(id), name, tag);
  if (reading.kind === 'plant') return reading.plant;
  throw new PlantStoreError(reading.message, { error: ERRORS.notNewPlant.number, canRetry: false });
}

function readId(input: unknown): IdReading {
  if (input === undefined) return { kind: 'fault', fault: 'id is required' };
  if (Number.isInteger(input) && !Number.isSafeInteger(input)) {
    const fault = 'id is a number that may have lost digits already (beyond 2^53 - 1); pass a bigint or text';
    return { kind: 'fault', fault };
  }
  const id = integerOf(input);
  if (id === undefined || !isInt64(id)) return { kind: 'fault', fault: `id must be ${ID_RULE}` };
  return { kind: 'id', id };
}

function integerOf(input: unknown): bigint | undefined {
  if (typeof input === 'bigint') return input;
  if (typeof input === 'number') return Number.isSafeInteger(input) ? BigInt(input) : undefined;
  return typeof input === 'string' && /^-?[0-9]{1,19}$/.test(input) ? BigInt(input) : undefined;
}
