import { InvalidArgumentError } from 'commander';
import { readTypedId } from './id-text.ts';

/** Parses an id on the command line. */
export function parseId(text: string): bigint {
  const reading = readTypedId(text);
  if (reading.kind === 'id') return reading.id;
  throw new InvalidArgumentError(`The ${reading.fault}.`);
}
