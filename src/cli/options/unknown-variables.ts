import type { Command } from 'commander';

const PREFIX = 'PLANT_STORE_';
/**
 * Kubernetes sets these for a service whose name begins with `plant-store`
 * (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
 */
const OF_KUBERNETES = /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)$/;
const ADDRESS_OF_KUBERNETES = /^(?:tcp|udp|sctp):\/\//;

/** @returns the set variables with our prefix that no option of these commands has */
export function unknownVariables(env: NodeJS.ProcessEnv, commands: readonly Command[]): string[] {
  const all = commands.flatMap(command => [command, ...command.commands]);
  const known = new Set(all.flatMap(({ options }) => options.map(({ envVar }) => envVar)));
  const isOurs = (name: string): boolean =>
    name.startsWith(PREFIX) && !OF_KUBERNETES.test(name) && !ADDRESS_OF_KUBERNETES.test(env[name]!);
  // Scripts often empty a variable to unset it.
  return Object.keys(env).filter(name => isOurs(name) && env[name] !== '' && !known.has(name));
}
