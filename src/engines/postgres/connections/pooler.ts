import type pg from 'pg';
import { StoreRejected } from '../../../core/commit/store-errors.ts';
import { connectionError, NoResponse, sqlStateOf } from '../postgres-errors.ts';
import type { HostAddress } from '../postgres-url.ts';
import type { PgClient } from './pg-client.ts';
import { withinTimeout } from './within-timeout.ts';

/** A pooler without a free connection lets a statement wait. */
const PROBE_TIMEOUT_MS = 2_000;
/** Between two statements of a probe, another client of a pooler may get their connection. */
const PROBES = 3;

/** The process of the server that executes the statement. */
export const PROCESS_ID = 'SELECT pg_backend_pid()';

/**
 * Rejects a pooler that gives the statements of one session to several processes of the server, as
 * PgBouncer does in its modes `transaction` and `statement`. Such a process lacks the settings of the
 * session, so a commit may not be durable.
 *
 * A pooler gives a process away while its session is idle. So here another session begins a
 * transaction while the first one is idle. With a pooler, it gets the process of the first session,
 * whose next statement then gets another process or none. Proxies that connect each client with a
 * process of its own pass: PgBouncer in its mode `session`, and the proxy of Neon.
 *
 * @param host tested once
 * @param processOf reads the process of the first session within this time
 * @param other a client for a second session of the same server
 * @throws {StoreRejected}
 */
export async function rejectPooler(
  host: HostAddress,
  processOf: (timeoutMs: number) => Promise<(string | null)[][]>,
  { client, socket, connect }: PgClient,
): Promise<void> {
  if (HOSTS_WITHOUT_POOLER.has(host)) return;
  client.on('error', () => {});
  try {
    await connect();
    for (let probe = 0; probe < PROBES; probe++) await rejectSharedProcess(processOf, client);
  } finally {
    socket.destroy();
  }
  HOSTS_WITHOUT_POOLER.add(host);
}

/** These are behind a proxy that gives each session a process of its own. */
const HOSTS_WITHOUT_POOLER = new WeakSet<HostAddress>();

async function rejectSharedProcess(
  processOf: (timeoutMs: number) => Promise<(string | null)[][]>,
  other: pg.Client,
): Promise<void> {
  // A pooler that takes turns between its connections gives these two statements to two of them.
  const processes = [await processOf(PROBE_TIMEOUT_MS), await processOf(PROBE_TIMEOUT_MS)];
  await beginTransaction(other);
  const after = await processOf(PROBE_TIMEOUT_MS).catch(error => {
    // The transaction of the other session occupies the only connection of the pooler.
    throw error instanceof NoResponse ? poolerError(error) : error;
  });
  await runWithinTimeout(other, 'ROLLBACK').catch(error => {
    throw connectionError(error);
  });
  if (new Set([...processes, after].map(([row]) => row![0])).size > 1) throw poolerError();
}

/** The transaction keeps its process of the server, since it has executed a statement. */
async function beginTransaction(other: pg.Client): Promise<void> {
  try {
    await runWithinTimeout(other, 'BEGIN');
    await runWithinTimeout(other, PROCESS_ID);
  } catch (error) {
    // PgBouncer rejects BEGIN in its mode `statement`.
    throw sqlStateOf(error) === undefined ? connectionError(error as Error) : poolerError(error);
  }
}

async function runWithinTimeout(client: pg.Client, text: string): Promise<void> {
  await withinTimeout(client.query(text), PROBE_TIMEOUT_MS, () => new NoResponse(PROBE_TIMEOUT_MS, false));
}

export function poolerError(cause?: unknown): StoreRejected {
  return new StoreRejected(
    'a pooler, such as PgBouncer, is between this program and PostgreSQL, so confirmed plants could be lost',
    { advice: 'name the server itself, or let the pooler keep a connection for each session', cause },
  );
}
