import { InvalidArgumentError } from 'commander';
import { readTypedId } from '../import/id-text.ts';

/** Parses an id on the command line. Commander prints the text itself before the message. */
export function parseId(text: string): bigint {
  const id = readTypedId(text);
  if (typeof id === 'bigint') return id;
  throw new InvalidArgumentError(`It ${id}.`);
}
