import type { Command, Option } from 'commander';
import type { OpenExtra } from '../service.ts';

/** What an extra adds to the command line. `src/extras.ts` lists the extras. */
export interface Extra {
  /** A command of its own. `load` gets all extras, for a command that runs a service. */
  readonly command?: { name: string; load: (extras: readonly Extra[]) => Promise<Command> };
  /** Options of the commands that run a service. */
  readonly serveOptions?: () => readonly Option[];
  /**
   * Reads the settings of the extra from the options or the environment.
   *
   * @returns how the service opens the extra; undefined: it is off
   * @throws {Failure} with exit code 2 if a setting is invalid
   */
  readonly read?: (
    options: object,
    env: NodeJS.ProcessEnv,
    warn: (message: string) => void,
  ) => OpenExtra | undefined;
  /** Options of `token create`, and their effect on a new token. */
  readonly newToken?: {
    options: () => readonly Option[];
    /** Called before the token is stored. @throws {Failure} if the token must not be stored */
    apply: (options: object, storedHash: string) => Promise<void>;
  };
}
