import { ERRORS, type ErrorName } from './errors.ts';
import { OUTCOMES, type Outcome } from './plant.ts';

/** The result of a request: the outcome of a plant, an entry of the error catalogue, or neither. */
export type Result = Outcome | ErrorName | 'other';

export function isOutcome(result: Result): result is Outcome {
  return (OUTCOMES as readonly Result[]).includes(result);
}

export function isErrorName(result: Result): result is ErrorName {
  return Object.hasOwn(ERRORS, result);
}
