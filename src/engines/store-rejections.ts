import { StoreMissing, StoreRejected } from '../core/commit/store-errors.ts';

/**
 * The option with the address of the store, in advice. Only a command knows its flag, and writes it
 * instead.
 */
export const DATABASE_OPTION = 'the database option';

/**
 * Compares the schema that the schema steps make with the one found: the definition of each item by
 * its name. A trigger, for example, could delete or change each new plant.
 */
export function schemaFaultsOf(ours: Map<string, string>, found: Map<string, string>): string[] {
  return [...new Set([...ours.keys(), ...found.keys()])].flatMap(item => {
    if (!found.has(item)) return [`the ${item} is missing`];
    if (!ours.has(item)) return [`the ${item} is not part of the schema`];
    return ours.get(item) === found.get(item) ? [] : [`the ${item} was changed`];
  });
}

export const SCHEMA_ADVICE = 'undo this, or move the plants into a new store with `npx plant-store copy`';

/** @throws {StoreRejected} if there is a fault */
export function rejectSchema(faults: string[]): void {
  if (faults.length > 0) throw new StoreRejected(faults.join(', '), { advice: SCHEMA_ADVICE });
}

export function missingStoreError(place: string): StoreMissing {
  return new StoreMissing(`there is no plant store ${place}`, {
    advice: `name an existing one with ${DATABASE_OPTION}; only \`serve\`, \`token create\` and \`copy --to\` create one`,
  });
}

export function schemaStepError(store: string, step: number, newest: number): StoreRejected {
  return step > newest
    ? new StoreRejected(
        `${store} was written by a newer plant-store (schema step ${step}, this program knows ${newest})`,
        { advice: 'use that one' },
      )
    : new StoreRejected(`${store} has schema step ${step} and this program expects ${newest}`, {
        advice: 'start the service once to update it',
      });
}
