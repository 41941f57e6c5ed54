import { Option } from 'commander';
import type { Extra } from '../../cli/extra.ts';
import { readDatabase } from '../../cli/shared/database-option.ts';

const PREFER = 'in a sandbox: faults for requests with this token that ask for none';

/** A service that fails on request, to test clients. */
export const sandbox: Extra = {
  command: {
    name: 'sandbox',
    load: async extras => (await import('./sandbox-command.ts')).sandboxCommand(extras),
  },
  newToken: {
    options: () => [new Option('--prefer <text>', PREFER)],
    async apply(options, storedHash) {
      const { prefer, ...store } = options as { prefer?: string; database: string };
      if (prefer === undefined) return;
      const { validPrefer, sandboxFiles } = await import('./sandbox-command.ts');
      sandboxFiles(readDatabase(store)).tokens.append({ hash: storedHash, prefer: validPrefer(prefer) });
    },
  },
};
