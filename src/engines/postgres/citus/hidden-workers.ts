import { StoreRejected } from '../../../core/commit/store-errors.ts';
import type { Problem } from '../../../core/problem.ts';
import type { Connection } from '../connection.ts';
import { lossWarnings } from '../schema/durability-warnings.ts';

/**
 * Workers of Citus that cannot be reached from here. Managed clusters may hide them: `pg_dist_node`
 * then has names that only the servers resolve. The coordinator runs statements on them.
 */

/** @throws {StoreRejected} if a worker may lose confirmed plants */
export async function rejectLosingWorkers(coordinator: Connection): Promise<void> {
  const losing = (await workerSettings(coordinator)).filter(({ commit }) => commit === 'off');
  if (losing.length === 0) return;
  // The coordinator passes statements on without the settings of its own session.
  throw new StoreRejected(
    `synchronous_commit is off on ${losing.map(({ server }) => server).join(', ')}, so confirmed plants could be lost`,
    { advice: 'set synchronous_commit = on for all servers' },
  );
}

/** Inspects the workers through the coordinator. */
export async function hiddenWorkerWarnings(coordinator: Connection): Promise<Problem[]> {
  const workers = await workerSettings(coordinator);
  return workers.flatMap(({ server, fsync, fullPageWrites, commit }) =>
    fsync === undefined
      ? [
          {
            fault: `${server} does not respond, so its plants get 503`,
            advice: 'check whether it runs, and the network between it and the coordinator',
          },
        ]
      : lossWarnings(server, fsync, fullPageWrites, commit),
  );
}

interface WorkerSettings {
  /** Its name in a message. */
  server: string;
  /** These are undefined if the worker does not respond. */
  fsync?: string;
  fullPageWrites?: string;
  commit?: string;
}

async function workerSettings(coordinator: Connection): Promise<WorkerSettings[]> {
  const rows = await coordinator.run({
    text: `SELECT nodename || ':' || nodeport, success, result FROM run_command_on_workers($$ SELECT concat_ws(' ',
      current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')) $$)`,
  });
  return rows.map(([name, success, result]) => {
    const server = `the worker ${name}`;
    if (success !== 't') return { server };
    const [fsync, fullPageWrites, commit] = result!.split(' ') as [string, string, string];
    return { server, fsync, fullPageWrites, commit };
  });
}
