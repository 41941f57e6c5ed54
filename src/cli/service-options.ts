import type { Command } from 'commander';
import { isBaseUrl } from '../client/transport.ts';
import { BEARER_TOKEN } from '../contract/bearer-token.ts';
import { Failure } from './failure.ts';
import { readSecretFile, setting } from './setting.ts';

/** The running service that a command speaks to. */
export interface ServiceAddress {
  /** The base address, without the `/plants`. */
  url: URL;
  token: string;
}

/** Adds --url, --token and --token-file to a command that speaks to a running service. */
export function addServiceOptions(command: Command): Command {
  const description = 'base address of the running service';
  return addTokenOptions(
    command.addOption(setting('--url <URL>', description, undefined, 'http://127.0.0.1:8080')),
  );
}

/** Adds --token and --token-file to a command that is told the address in another way. */
export function addTokenOptions(command: Command): Command {
  const warning = 'bearer token; other users of the machine may see it in the list of processes';
  return command
    .addOption(setting('--token <TOKEN>', warning))
    .addOption(setting('--token-file <FILE>', 'file that holds the bearer token and nothing else'));
}

/** Reads what {@link addServiceOptions} added. @throws {Failure} with exit code 2 */
export function readServiceAddress(command: Command): ServiceAddress {
  return { url: readBaseUrl(command.opts<{ url: string }>().url, '--url'), token: readToken(command) };
}

/** @param name what the address was given as. @throws {Failure} with exit code 2 when it is none */
export function readBaseUrl(text: string, name: string): URL {
  const url = URL.parse(text);
  if (url !== null && isBaseUrl(url)) return url;
  throw new Failure(
    `${name} must be an http or https address such as http://127.0.0.1:8080, without user name, password, ? and #`,
    2,
  );
}

/**
 * Reads what {@link addTokenOptions} added. A flag beats the environment.
 *
 * @throws {Failure} with exit code 2 when the token is missing, given twice or malformed
 */
export function readToken(command: Command): string {
  const { token, tokenFile } = command.opts<{ token?: string; tokenFile?: string }>();
  const tokenSource = token ? command.getOptionValueSource('token') : undefined;
  const fileSource = tokenFile ? command.getOptionValueSource('tokenFile') : undefined;
  if (tokenSource === undefined && fileSource === undefined) {
    throw new Failure(
      'a token is needed: give --token-file FILE or --token TOKEN, or set PLANT_STORE_TOKEN; ' +
        'make one with: npx plant-store token create LABEL',
      2,
    );
  }
  if (tokenSource === fileSource) {
    const both =
      tokenSource === 'env' ? 'PLANT_STORE_TOKEN and PLANT_STORE_TOKEN_FILE' : '--token and --token-file';
    throw new Failure(`${both} are both given; keep one of them`, 2);
  }
  const file = fileSource === 'cli' || tokenSource === undefined ? tokenFile : undefined;
  const text = file ? readSecretFile(file, `the token file ${file}`, 'token') : token!;
  if (BEARER_TOKEN.test(text)) return text;
  throw new Failure(`the ${file ? `text in ${file}` : 'token'} is not a token: it holds other characters`, 2);
}
