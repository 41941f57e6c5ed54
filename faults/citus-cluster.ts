import { setTimeout as wait } from 'node:timers/promises';
import { childrenOf } from '../test/harness/child-processes.ts';
import { queryOnce } from '../test/harness/postgres-server.ts';
import { until } from '../test/harness/until.ts';

/** A server of a Citus cluster that runs on this machine. */
export class CitusNode {
  readonly #url: URL;
  readonly #mainProcess: number;

  private constructor(url: URL, mainProcess: number) {
    this.#url = url;
    this.#mainProcess = mainProcess;
  }

  /** @param url of the database, as a superuser */
  static async of(url: URL): Promise<CitusNode> {
    const [row] = await query(url, `SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS id`);
    return new CitusNode(url, Number(row!.id));
  }

  get host(): string {
    return this.#url.hostname;
  }

  get port(): string {
    return this.#url.port;
  }

  /** Name and port, as the coordinator knows them. */
  get address(): string {
    return this.#url.host;
  }

  query(sql: string): Promise<Record<string, string>[]> {
    return query(this.#url, sql);
  }

  /**
   * Kills all processes that have connections or write files (SIGKILL). The main process then starts
   * new ones, which recover from the write-ahead log. Settles when the server responds again.
   */
  async crash(): Promise<void> {
    for (const id of childrenOf(this.#mainProcess)) signalTo(id, 'SIGKILL');
    await until('the server responds', () =>
      this.query('SELECT 1').then(
        () => true,
        () => false,
      ),
    );
  }

  /** Stops all processes of the server without ending them, and lets them continue later. */
  async freezeFor(ms: number): Promise<void> {
    const processes = [this.#mainProcess, ...childrenOf(this.#mainProcess)];
    for (const id of processes) signalTo(id, 'SIGSTOP');
    await wait(ms);
    for (const id of processes) signalTo(id, 'SIGCONT');
  }
}

function signalTo(id: number, signal: NodeJS.Signals): void {
  try {
    process.kill(id, signal);
  } catch {
    // It has ended.
  }
}

/** @param url of the database, as a superuser */
export function query(url: URL, sql: string): Promise<Record<string, string>[]> {
  return queryOnce(url.href, sql);
}

/** The coordinator first. @param url of the coordinator, as a superuser */
export async function nodesOf(url: URL): Promise<CitusNode[]> {
  const addresses = await query(
    url,
    `SELECT nodename || ':' || nodeport AS host FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid`,
  );
  return await Promise.all(
    addresses.map(({ host }) => {
      const nodeUrl = new URL(url);
      nodeUrl.host = host!;
      return CitusNode.of(nodeUrl);
    }),
  );
}
