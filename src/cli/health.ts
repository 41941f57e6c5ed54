import { Command } from 'commander';
import { readBody } from '../client/fetch-transport.ts';
import { jsonObject } from '../client/plant-store-error.ts';
import { visible } from '../formats/visible-text.ts';
import { type ListenAddress, listenerUrl } from '../server/listen-address.ts';
import { opsSetting } from './options/serve-options.ts';
import { Failure } from './shared/failure.ts';

/** The service needs less time to report a store that does not respond. */
const RESPONSE_TIMEOUT_MS = 5_000;
const RESPONSE_MAX_BYTES = 100_000;

export function healthCommand(): Command {
  return new Command('health')
    .description('ask the service on this machine whether it can store plants; if not, the exit code is 1')
    .addOption(opsSetting())
    .addHelpText('after', '\nExample:\n  $ npx plant-store health --ops 8081')
    .action(reportHealth);
}

async function reportHealth({ ops }: { ops: ListenAddress }): Promise<void> {
  const url = `${listenerUrl(ops)}/readyz`;
  const advice = 'start the service, or name the address of its operations listener with --ops';
  const { httpStatus, text } = await responseFrom(url).catch((error: Error & { cause?: unknown }) => {
    const { code, message } = Object(error.cause ?? error) as NodeJS.ErrnoException;
    const reason = error.name === 'TimeoutError' ? `${RESPONSE_TIMEOUT_MS / 1_000} s` : (code ?? message);
    throw new Failure(`no response from ${url} (${visible(reason)}); ${advice}`);
  });
  const { status, reason, warnings } = jsonObject(text);
  if (httpStatus === 503 && status === 'not ready')
    throw new Failure(`the service is not ready: ${visible(String(reason))}`);
  if (httpStatus !== 200 || status !== 'ready')
    throw new Failure(
      `${url} is not the operations listener of a plant store: it responds with status ${httpStatus}; ${advice}`,
    );
  const warned = Array.isArray(warnings) ? warnings : [];
  console.log(visible(['the service is ready', ...warned.map(each => `WARNING: ${each}`)].join('; ')));
}

async function responseFrom(url: string): Promise<{ httpStatus: number; text: string }> {
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
  const { status, body } = await fetch(url, { signal, redirect: 'manual' });
  return { httpStatus: status, text: Buffer.concat(await readBody(body, RESPONSE_MAX_BYTES)).toString() };
}
