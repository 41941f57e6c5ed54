import { CITUS } from '../citus/citus-topology.ts';
import { ONE_SERVER } from './one-server.ts';
import type { Topology } from './topology.ts';

/** An SQL expression for what {@link topologyOf} must know about a database. */
export const TOPOLOGY_SQL = `EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')`;

/** Chooses the topology of a database. @param hasCitus the value of {@link TOPOLOGY_SQL} */
export function topologyOf(hasCitus: string): Topology {
  return hasCitus === 't' ? CITUS : ONE_SERVER;
}
