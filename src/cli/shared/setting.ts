import { readFileSync } from 'node:fs';
import { InvalidArgumentError, Option } from 'commander';
import { Failure } from './failure.ts';

/**
 * An option that also has an environment variable.
 *
 * @param initial the default as a user would write it; undefined if there is none
 */
export function setting(
  flags: string,
  description: string,
  parse: (text: string) => unknown = text => text,
  initial?: string | number,
): Option {
  const option = new Option(flags, description);
  if (initial !== undefined) option.default(parse(String(initial)), String(initial));
  return withVariable(option, (text, variable) => {
    rejectControlCharacters(text, `--${option.name()} or ${variable}`);
    return parse(text);
  });
}

/**
 * A setting with several values. Its flag may be repeated. Its variable has one value in each line.
 *
 * @param parse validates one value, and rejects control characters
 */
export function repeatableSetting(
  flags: string,
  description: string,
  parse: (text: string) => string,
): Option {
  return withVariable(new Option(flags, description), (text, _variable, earlier: string[] = []) => {
    const lines = text.split('\n').filter(line => line !== '');
    // An empty flag is invalid, unlike an empty variable.
    return [...earlier, ...(lines.length === 0 ? [''] : lines).map(parse)];
  });
}

/**
 * The message does not repeat the text, which may be a secret.
 *
 * @param name the text in the message. @throws {Failure} with exit code 2
 */
export function rejectControlCharacters(text: string, name: string): void {
  if (!/\p{Cc}/u.test(text)) return;
  throw new Failure(
    `${name} has a control character, such as the carriage return of a Windows line end; remove it`,
    2,
  );
}

/** Adds the environment variable, such as PLANT_STORE_TOKEN_FILE for `--token-file`. */
function withVariable<Value>(
  option: Option,
  parse: (text: string, variable: string, earlier?: Value) => unknown,
): Option {
  const variable = `PLANT_STORE_${option.name().toUpperCase().replaceAll('-', '_')}`;
  // Commander would parse an empty variable. Scripts often empty a variable to unset it.
  if (process.env[variable] === '') delete process.env[variable];
  return option.env(variable).argParser<Value>((text, earlier) => parse(text, variable, earlier) as Value);
}

/** A setting that is one of some words. @param initial the default */
export function choice(flags: string, description: string, words: string[], initial: string): Option {
  return setting(flags, description, undefined, initial).choices(words);
}

/** @returns a parser of whole numbers from 1 to `max` */
export function countUpTo(max: number): (text: string) => number {
  return text => {
    const count = /^[0-9]+$/.test(text) ? Number(text) : 0;
    if (count < 1 || count > max) throw new InvalidArgumentError(`Give a number from 1 to ${max}.`);
    return count;
  };
}

/**
 * Reads a small file, without the line end at its end.
 *
 * @param name the file in a message
 * @throws {Failure} with exit code 2 if it cannot be read or is empty
 */
export function readTextFile(file: string, name: string, content: 'token' | 'password' | 'ids'): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Failure(`${name} cannot be read (${code}); give the path of a file`, 2);
  }
  if (text === '') throw new Failure(`${name} is empty; put the ${content} into it`, 2);
  return text;
}
