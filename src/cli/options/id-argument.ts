import { InvalidArgumentError } from 'commander';
import { readTypedId } from '../id-text.ts';

/** Parses an id on the command line. Commander prints the text itself before the message. */
export function parseId(text: string): bigint {
  const reading = readTypedId(text);
  if (reading.kind === 'id') return reading.id;
  throw new InvalidArgumentError(`It ${reading.fault}.`);
}
