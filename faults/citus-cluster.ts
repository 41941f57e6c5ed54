import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { childrenOf } from '../test/harness/child-processes.ts';
import { queryOnce } from '../test/harness/postgres-server.ts';
import { until } from '../test/harness/until.ts';

/** A server of a Citus cluster that runs on this machine. */
export class CitusNode {
  readonly #url: URL;
  /** The main process of the server, and how to start it again. */
  #main: number;
  readonly #program: string;
  readonly #args: string[];
  readonly #env: NodeJS.ProcessEnv;
  readonly #owner: { uid: number; gid: number };

  private constructor(url: URL, main: number) {
    this.#url = url;
    this.#main = main;
    this.#program = readlinkSync(`/proc/${main}/exe`);
    this.#args = listIn(`/proc/${main}/cmdline`).slice(1);
    this.#env = Object.fromEntries(listIn(`/proc/${main}/environ`).map(entry => entry.split(/=(.*)/s, 2)));
    const { uid, gid } = statSync(`/proc/${main}`);
    this.#owner = { uid, gid };
  }

  /** @param url of the database, as a superuser */
  static async of(url: URL): Promise<CitusNode> {
    return new CitusNode(url, await mainProcessOf(url));
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

  /** Kills all processes of the server. */
  async kill(): Promise<void> {
    const main = this.#main;
    this.signal('SIGKILL');
    await until('the server has ended', () => !isRunning(main));
  }

  /** Sends a signal to all processes of the server, such as SIGSTOP and SIGCONT. */
  signal(signal: NodeJS.Signals): void {
    for (const id of [this.#main, ...childrenOf(this.#main)]) {
      try {
        process.kill(id, signal);
      } catch {
        // It has ended.
      }
    }
  }

  /** Settles when the killed server responds again. */
  async start(): Promise<void> {
    let server: ChildProcess | undefined;
    await until('the server responds', async () => {
      // The first start fails while a process of the killed server still uses its shared memory.
      if (server === undefined || server.exitCode !== null) {
        server = spawn(this.#program, this.#args, {
          ...this.#owner,
          env: this.#env,
          cwd: '/',
          detached: true,
          stdio: 'ignore',
        });
        server.unref();
      }
      this.#main = await mainProcessOf(this.#url).catch(() => this.#main);
      return isRunning(this.#main);
    });
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

async function mainProcessOf(url: URL): Promise<number> {
  const [row] = await query(url, `SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) AS id`);
  return Number(row!.id);
}

/** The strings of a file of /proc, each of which ends with a null byte. */
function listIn(file: string): string[] {
  return readFileSync(file, 'latin1').split('\0').slice(0, -1);
}

function isRunning(id: number): boolean {
  try {
    return readFileSync(`/proc/${id}/stat`, 'latin1').split(') ')[1]?.[0] !== 'Z';
  } catch {
    return false;
  }
}
