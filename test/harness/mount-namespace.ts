import { spawnSync } from 'node:child_process';

/** Runs a command as root of a user namespace, in which it may mount. */
const COMMAND = ['unshare', '--user', '--map-root-user', '--mount'] as const;

/**
 * @param what what is not tested on a system without such namespaces, for the output of the test
 * @returns the command line to put before a program; undefined on such a system
 */
export function mountNamespace(what: string): readonly string[] | undefined {
  const [command, ...options] = COMMAND;
  if (spawnSync(command, [...options, 'true']).status === 0) return COMMAND;
  console.error(`NOT TESTED HERE: ${what} needs user namespaces, which this system does not allow`);
  return undefined;
}
