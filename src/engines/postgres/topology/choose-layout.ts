import { CITUS } from '../citus/citus-layout.ts';
import { ONE_SERVER } from './one-server.ts';
import type { TableLayout } from './table-layout.ts';

/** An SQL expression for what {@link layoutOf} must know about a database. */
export const LAYOUT_SQL = `EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')`;

/** Chooses the layout of a database. @param hasCitus the value of {@link LAYOUT_SQL} */
export function layoutOf(hasCitus: string): TableLayout {
  return hasCitus === 't' ? CITUS : ONE_SERVER;
}
