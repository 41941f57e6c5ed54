import { Command } from 'commander';
import type { ListenAddress } from '../service.ts';
import { Failure } from './failure.ts';
import { opsSetting, opsUrl } from './serve-options.ts';

/** Longer than the service takes to report a store that does not respond. */
const RESPONSE_TIMEOUT_MS = 5_000;

export function healthCommand(): Command {
  return new Command('health')
    .description('ask the service on this machine whether it can store plants; if not, the exit code is 1')
    .addOption(opsSetting())
    .addHelpText('after', '\nExample:\n  $ npx plant-store health --ops 8081')
    .action(reportHealth);
}

async function reportHealth({ ops }: { ops: ListenAddress }): Promise<void> {
  const url = `${opsUrl(ops)}/readyz`;
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
  const [httpStatus, body] = await fetch(url, { signal }).then(
    async response => [response.status, await response.text()] as const,
    error => {
      const advice = 'start the service, or name the address of its operations listener with --ops';
      throw new Failure(`no response from ${url} (${codeOf(error)}); ${advice}`);
    },
  );
  const { status, reason, warnings = [] } = readinessIn(body);
  if (status === 'not ready') throw new Failure(`the service is not ready: ${reason}`);
  if (status !== 'ready') {
    const advice = 'name the address of the operations listener with --ops';
    throw new Failure(`${url} is not of a plant store: it responds with status ${httpStatus}; ${advice}`);
  }
  console.log(['the service is ready', ...warnings.map(each => `WARNING: ${each}`)].join('; '));
}

/** Another program may respond with anything. */
function readinessIn(body: string): { status?: string; reason?: string; warnings?: string[] } {
  try {
    return Object(JSON.parse(body));
  } catch {
    return {};
  }
}

function codeOf(error: Error & { cause?: unknown }): string {
  const { code } = Object(error.cause) as NodeJS.ErrnoException;
  return error.name === 'TimeoutError'
    ? `${RESPONSE_TIMEOUT_MS / 1_000} s`
    : (code ?? (error.cause as Error).message);
}
