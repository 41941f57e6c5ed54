import type { ErrorName } from '../core/contract/errors.ts';
import { OUTCOMES, type Outcome } from '../core/contract/plant.ts';
import type { Result } from '../core/response.ts';

export function isOutcome(result: Result): result is Outcome {
  return (OUTCOMES as readonly Result[]).includes(result);
}

export function isErrorName(result: Result): result is ErrorName {
  return result !== 'other' && !isOutcome(result);
}
