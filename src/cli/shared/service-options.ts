import type { Command } from 'commander';
import { isBaseUrl } from '../../client/transport.ts';
import { BEARER_TOKEN } from '../../core/contract/bearer-token.ts';
import { Failure } from './failure.ts';
import { readTextFile, setting } from './setting.ts';

/** A running service, and the token that it accepts. */
export interface ServiceAddress {
  url: URL;
  token: string;
  /** The source of the token, such as `PLANT_STORE_TOKEN`. */
  tokenSource: string;
}

/** Adds --url, --token and --token-file. */
export function addServiceOptions(command: Command): Command {
  const description = 'base address of the running service';
  return addTokenOptions(
    command.addOption(setting('--url <URL>', description, undefined, 'http://127.0.0.1:8080')),
  );
}

/** Adds --token and --token-file to a command that gets the address as an argument. */
export function addTokenOptions(command: Command): Command {
  const description = 'bearer token; other users of this machine can see it in the process list';
  return command
    .addOption(setting('--token <TOKEN>', description))
    .addOption(setting('--token-file <FILE>', 'file that contains only the bearer token'));
}

/** Reads the options of {@link addServiceOptions}. @throws {Failure} with exit code 2 if invalid */
export function readServiceAddress(command: Command): ServiceAddress {
  return { url: readBaseUrl(command.opts<{ url: string }>().url, '--url'), ...readToken(command) };
}

/** The address and the token file that the user gave as options, for a command that is printed. */
export function givenServiceOptions(command: Command): string[] {
  const { url, tokenFile } = command.opts<{ url: string; tokenFile?: string }>();
  const given = (option: string, words: string[]): string[] =>
    command.getOptionValueSource(option) === 'cli' ? words : [];
  return [...given('url', ['--url', url]), ...given('tokenFile', ['--token-file', tokenFile!])];
}

/** Makes the text for a 401 response. @param message of the response */
export function unauthorizedText({ tokenSource }: ServiceAddress, message: string): string {
  return `the service rejects the token of ${tokenSource}: ${message}; or create a token with: npx plant-store token create LABEL`;
}

/** @param name the option, for a message. @throws {Failure} with exit code 2 if malformed */
export function readBaseUrl(text: string, name: string): URL {
  const url = URL.parse(text);
  if (url !== null && isBaseUrl(url)) return url;
  throw new Failure(
    `${name} must be an http or https address without user name, password, ? or #, for example http://127.0.0.1:8080`,
    2,
  );
}

/** Reads --token or --token-file. A flag overrides an environment variable. @throws {Failure} */
export function readToken(command: Command): Pick<ServiceAddress, 'token' | 'tokenSource'> {
  const { token, tokenFile } = command.opts<{ token?: string; tokenFile?: string }>();
  const isFlag = (option: string): boolean => command.getOptionValueSource(option) === 'cli';
  if (!token && !tokenFile)
    throw new Failure(
      'a token is required: give --token-file FILE or --token TOKEN, or set PLANT_STORE_TOKEN; ' +
        'create a token with: npx plant-store token create LABEL',
      2,
    );
  if (token && tokenFile && isFlag('token') === isFlag('tokenFile')) {
    const both = isFlag('token')
      ? '--token and --token-file'
      : 'PLANT_STORE_TOKEN and PLANT_STORE_TOKEN_FILE';
    throw new Failure(`${both} are both given; give only one of them`, 2);
  }
  const file = token && !isFlag('tokenFile') ? undefined : tokenFile;
  const tokenSource = file ? `the file ${file}` : isFlag('token') ? '--token' : 'PLANT_STORE_TOKEN';
  const text = file ? readTextFile(file, `the token file ${file}`, 'token') : token!;
  if (BEARER_TOKEN.test(text)) return { token: text, tokenSource };
  throw new Failure(`the text of ${tokenSource} is not a token: a character is not allowed`, 2);
}
