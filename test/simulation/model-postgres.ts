import { COORDINATOR_GROUP, hashOf } from '../../src/engines/postgres/citus/citus-shards.ts';
import { SHARDS_AGE_MAX_MS } from '../../src/engines/postgres/citus/citus-workers.ts';
import { OPERATION_TIMEOUT_MS, type Statement, type TextRow } from '../../src/engines/postgres/connection.ts';
import type { HostAddress } from '../../src/engines/postgres/postgres-url.ts';
import { EXPECTED_SCHEMA } from '../../src/engines/postgres/schema/expected-schema.ts';
import { ModelServer, ServerError, type Session, type StoredRow } from './model-server.ts';
import { ModelTableLock } from './model-table-lock.ts';
import { count, type Happened } from './part.ts';
import type { Scheduler } from './scheduler.ts';

const COLUMNS = 7;
/** From the loss of a lock until every batch that needed it has ended. */
const LOST_LOCK_MAX_MS = SHARDS_AGE_MAX_MS + OPERATION_TIMEOUT_MS;
/** How long a command has the table for itself. */
const CONVERSION_MAX_MS = 400;

export interface Reply {
  rows: TextRow[];
  /** The server warns that it did not wait for the standby. */
  hasWarning: boolean;
}

/** Errors after which the client knows that nothing was changed. */
const NOTHING_CHANGED = ['40001', '40P01', '57014', '55P03', '23505', '53100', '42501', 'XX001', '22P02'];
/** Errors that end the use of a connection. With some the server ends the process. */
const LOST = ['57P01', '57P02', '57P05', '08006', '08P01', '25006', '53300', '0A000', '26000', '42P05'];
const PROCESS_ENDS = /^(?:57P|08)/;

/** A primary with its standby. */
export class ServerPair {
  readonly hosts: HostAddress[];
  readonly servers: [ModelServer, ModelServer];
  primary: ModelServer;

  constructor(hosts: HostAddress[], servers: [ModelServer, ModelServer]) {
    this.hosts = hosts;
    this.servers = servers;
    this.primary = servers[0];
    this.primary.isPrimary = true;
    this.primary.standby = servers[1];
  }

  get other(): ModelServer {
    return this.servers[0] === this.primary ? this.servers[1] : this.servers[0];
  }

  /** The standby takes over. What it lacks is lost. The old primary may run on. */
  failOver(): void {
    const promoted = this.other;
    this.primary.standby = undefined;
    this.primary = promoted;
    promoted.isConnectedToStandby = true;
    promoted.start();
  }
}

/**
 * A database on one server with a standby, or on a coordinator and two workers of Citus, each with a
 * standby. It executes what the write path sends, and does what PostgreSQL may do.
 */
export class ModelPostgres {
  readonly scheduler: Scheduler;
  readonly happened: Happened;
  readonly isCitus: boolean;
  readonly isSynchronous: boolean;
  /** The first one is named in the settings. */
  readonly pairs: ServerPair[];
  /** On Citus, the pair that stores each shard. */
  readonly shards: { hashMin: number; pair: ServerPair }[];
  /** In percent, of statements. */
  faults: Record<'error' | 'requestLost' | 'responseLost' | 'silence' | 'slow' | 'settingLost', number>;
  /** The first thing that the write path must not do with a connection. */
  violation: Error | undefined;
  #shardMovedAtMs = Number.NEGATIVE_INFINITY;
  openConnections = 0;
  readonly tableLock: ModelTableLock;

  constructor(scheduler: Scheduler, happened: Happened) {
    this.scheduler = scheduler;
    this.happened = happened;
    this.tableLock = new ModelTableLock(scheduler, happened);
    this.isCitus = scheduler.happens(40);
    this.isSynchronous = scheduler.happens(65);
    const isSearched = !this.isCitus && scheduler.happens(70);
    this.pairs = Array.from({ length: this.isCitus ? 3 : 1 }, (_, number) => {
      const server = () => new ModelServer(scheduler, happened, this.isSynchronous);
      const hosts = (isSearched ? ['a', 'b'] : ['a']).map(name => ({ host: `${name}${number}`, port: 5432 }));
      return new ServerPair(hosts, [server(), server()]);
    });
    const shards = this.isCitus ? 4 : 1;
    this.shards = Array.from({ length: shards }, (_, shard) => ({
      hashMin: -(2 ** 31) + (shard * 2 ** 32) / shards,
      pair: scheduler.pick(...this.pairs),
    }));
    this.faults = this.noFaults();
  }

  noFaults(): ModelPostgres['faults'] {
    return { error: 0, requestLost: 0, responseLost: 0, silence: 0, slow: 0, settingLost: 0 };
  }

  pairOf(id: bigint): ServerPair {
    const hash = hashOf(id);
    return this.shards.findLast(({ hashMin }) => hashMin <= hash)!.pair;
  }

  /** The address of a pair with one host moves to the server that takes over. */
  serverAt({ host }: HostAddress): ModelServer {
    for (const { hosts, primary, servers } of this.pairs) {
      const at = hosts.findIndex(each => each.host === host);
      if (at !== -1) return hosts.length === 1 ? primary : servers[at]!;
    }
    throw new Error(`there is no host ${host}`);
  }

  /** Whether no failover can lose a row. */
  isDurable(id: bigint, revision: number): boolean {
    const { primary } = this.pairOf(id);
    const logs = [primary.log];
    if (this.isSynchronous && primary.standby !== undefined) logs.push(primary.standby.log);
    const isRow = (row: StoredRow): boolean => row.id === id && row.revision === revision;
    return logs.every(log => log.some(rows => rows.some(isRow)));
  }

  /**
   * Whether a server of this id has confirmed a commit since this time, if there is a standby to
   * confirm it. A server that another one has replaced confirms none, so its lookups are not enough.
   */
  hasConfirmedSince(id: bigint, sinceMs: number): boolean {
    if (!this.isSynchronous || this.#shardMovedAtMs >= sinceMs) return true;
    return this.pairOf(id).servers.some(({ confirmedAtMs }) => confirmedAtMs >= sinceMs);
  }

  /** Of a healthy database, the rows of an id in the order of their numbers. */
  revisionsOf(id: bigint): StoredRow[] {
    const rows = this.pairOf(id).primary.table.get(id)?.values() ?? [];
    return [...rows].sort((one, other) => one.revision - other.revision);
  }

  /** Moves a shard, if that loses nothing: Citus blocks writes meanwhile. */
  moveShard(): void {
    const shard = this.scheduler.pick(...this.shards);
    const target = this.scheduler.pick(...this.pairs);
    if (!this.isCitus || target === shard.pair || !target.primary.isQuiet || !shard.pair.primary.isQuiet)
      return;
    const { table } = shard.pair.primary;
    const ids = [...table.keys()].filter(id => {
      const hash = hashOf(id);
      return this.shards.findLast(({ hashMin }) => hashMin <= hash) === shard;
    });
    const rows = ids.flatMap(id => [...table.get(id)!.values()]);
    const added = target.primary.append(rows);
    if (added.length > 0 && this.isSynchronous) target.primary.standby!.log.push(added);
    target.primary.show(added);
    for (const id of ids) table.delete(id);
    shard.pair = target;
    this.#shardMovedAtMs = this.scheduler.now();
    count(this.happened, 'a shard moves');
  }

  /** @returns when the server has executed it @throws {ServerError} @throws {SessionEnded} */
  async execute(session: Session, statement: Statement): Promise<Reply> {
    const { text } = statement;
    const isEnd = text === 'COMMIT' || text === 'ROLLBACK';
    if (session.transaction === 'failed' && !isEnd) throw new ServerError('25P02');
    if (text === 'BEGIN') {
      if (session.transaction !== 'none') this.violation ??= new Error('a transaction is begun twice');
      session.transaction = 'open';
      session.lockTimeoutMs = undefined;
    } else if (isEnd) {
      session.transaction = 'none';
      this.tableLock.release(session);
    }
    try {
      return await this.#executeOrFail(session, statement);
    } catch (error) {
      if (session.transaction === 'open') {
        session.transaction = 'failed';
        this.tableLock.release(session);
      }
      throw error;
    }
  }

  /**
   * A command copies the rows that are visible, and drops the table with all rows that it missed.
   * Nobody runs it so soon after the host of the coordinator vanished that a batch of before is still
   * in flight: an instance may not have noticed yet that its lock is lost.
   *
   * @param timeoutMs how long it waits for its lock
   */
  async convertTable(timeoutMs: number): Promise<void> {
    const vanishedAtMs = Math.max(...this.pairs[0]!.servers.map(server => server.vanishedAtMs));
    if (this.scheduler.now() - vanishedAtMs < LOST_LOCK_MAX_MS) return;
    const isConnected = this.#coordinatorSession();
    await this.tableLock.alone('ExclusiveLock', timeoutMs, isConnected, async () => {
      const copied = new Set(this.pairs.flatMap(pair => rowsOf(pair.primary)));
      await this.scheduler.pause(1, CONVERSION_MAX_MS);
      if (!isConnected()) return;
      for (const server of this.pairs.flatMap(pair => pair.servers)) server.keepOnly(copied);
      this.tableLock.tableId++;
      count(this.happened, 'a command has replaced the table');
    });
  }

  /** A schema step, or another command that changes no row. */
  async changeTable(): Promise<void> {
    const change = () => this.scheduler.pause(1, CONVERSION_MAX_MS);
    const isConnected = this.#coordinatorSession();
    await this.tableLock.alone('AccessExclusiveLock', Number.POSITIVE_INFINITY, isConnected, change);
  }

  /** @returns whether a session of the coordinator that begins now still runs */
  #coordinatorSession(): () => boolean {
    const { primary } = this.pairs[0]!;
    const { starts } = primary;
    return () => primary === this.pairs[0]!.primary && primary.isUp && primary.starts === starts;
  }

  async #executeOrFail(session: Session, statement: Statement): Promise<Reply> {
    const fault = this.scheduler.happens(this.faults.error)
      ? this.scheduler.pick(...(this.scheduler.happens(50) ? NOTHING_CHANGED : LOST))
      : undefined;
    const isExecuted = fault !== undefined && this.#mayBeExecuted(fault, session, statement);
    if (fault === undefined || isExecuted) {
      const reply = await this.#executeNow(session, statement);
      if (fault === undefined) return reply;
      count(this.happened, 'an error after a commit');
    }
    count(this.happened, `SQLSTATE ${fault}`);
    const error = new ServerError(fault);
    if (PROCESS_ENDS.test(fault) && this.scheduler.happens(50)) {
      // The client reads the error before the end.
      this.scheduler.later(1, 3, () => session.end());
    }
    throw error;
  }

  /** Whether the statement may have committed, although there is an error. */
  #mayBeExecuted(sqlState: string, session: Session, { values, copyRows = '' }: Statement): boolean {
    if (!this.scheduler.happens(50)) return false;
    if (PROCESS_ENDS.test(sqlState)) return true;
    // Another server of Citus has committed, and this one fails then.
    const ids = [...idsOf(values), ...copiedRows(copyRows).map(({ id }) => id)];
    return this.isCitus && ids.some(id => this.#serverOf(id, session.server) !== session.server);
  }

  /** A server passes statements on to the one that stores the id. */
  #serverOf(id: bigint, server: ModelServer): ModelServer {
    const pair = this.pairOf(id);
    return pair.servers.includes(server) ? server : pair.primary;
  }

  /** Citus keeps a connection to each other server, and notices at its next use that it is lost. */
  #reach(server: ModelServer, session: Session): ModelServer {
    if (server === session.server) return server;
    count(this.happened, 'a statement is passed on to another server');
    const pair = this.pairs.findIndex(({ servers }) => servers.includes(server));
    const starts = this.pairs[pair]!.servers[0].starts + this.pairs[pair]!.servers[1].starts;
    const isLost = starts !== (session.startsOfReached.get(pair) ?? starts);
    session.startsOfReached.set(pair, starts);
    if (!isLost && server.isUp && server.hangsUntilMs <= this.scheduler.now()) return server;
    throw new ServerError('08006');
  }

  async #executeNow(session: Session, { name, text, values, copyRows }: Statement): Promise<Reply> {
    if (text.startsWith('SET LOCAL lock_timeout')) session.lockTimeoutMs = Number(text.split('=')[1]);
    if (text.startsWith('SELECT lock_relation_if_exists'))
      await this.tableLock.share(session, session.lockTimeoutMs);
    if (name === 'confirm') return await this.#confirm(session, values![0] as bigint[]);
    if (name === 'confirm_missing') return await this.#confirmMissing(session, values![0] as bigint);
    if (text.startsWith('INSERT INTO plant_revision'))
      return await this.#insert(session, insertedRows(values!), 'skip');
    if (text.startsWith('COPY plant_revision'))
      return await this.#insert(session, copiedRows(copyRows!), 'fail');
    if (text.startsWith('SELECT pg_logical_emit_message')) return await this.#emit(session, [session.server]);
    return { rows: this.#read(session, name ?? '', text, values ?? []), hasWarning: false };
  }

  #read(session: Session, name: string, text: string, values: unknown[]): TextRow[] {
    if (name === 'latest_revisions') {
      return (values[0] as bigint[]).flatMap(id => {
        const latest = this.#reach(this.#serverOf(id, session.server), session).latest(id);
        return latest === undefined ? [] : [latest.cells];
      });
    }
    if (text.includes('unnest($1::bigint[], $2::integer[])')) {
      const [ids, numbers] = values as [bigint[], number[]];
      return ids.flatMap((id, at) => {
        const latest = session.server.latest(id);
        const near = [numbers[at]! - 1, numbers[at]!, latest?.revision ?? 0];
        const rows = new Set(near).values().map(number => session.server.table.get(id)?.get(number));
        return ordered([...rows].filter(row => row !== undefined));
      });
    }
    if (text.includes('WHERE id = ANY($1::bigint[]) AND revision >= $2')) {
      const [ids, least] = values as [bigint[], number];
      return ids.flatMap(id => {
        const { table } = this.#reach(this.#serverOf(id, session.server), session);
        return ordered([...(table.get(id)?.values() ?? [])].filter(({ revision }) => revision >= least));
      });
    }
    if (text.includes(`coalesce(current_setting('synchronous_standby_names'`)) {
      return [[this.isSynchronous ? 'standby' : '']];
    }
    if (name === 'guard_of_copy') return [[null, null]];
    return this.#readCatalog(text);
  }

  #readCatalog(text: string): TextRow[] {
    if (text.startsWith('SELECT groupid FROM pg_dist_local_group')) return [[COORDINATOR_GROUP]];
    if (text.startsWith(`SELECT format('GRANT EXECUTE`)) return [['GRANT']];
    if (/^(?:SET (?:plan_cache_mode|LOCAL)|DO \$\$|BEGIN|COMMIT|ROLLBACK|SELECT lock_relation)/.test(text))
      return [];
    if (text.startsWith(`SELECT to_regclass('plant_revision')::oid`))
      return [[String(this.tableLock.tableId)]];
    if (text.startsWith('SELECT DISTINCT mode FROM pg_locks'))
      return this.tableLock.waitingModes.map(mode => [mode]);
    if (text.startsWith('SELECT relkind')) return [['t']];
    if (text.startsWith(`SELECT current_setting('fsync'`)) return [['on', 'on', 'on', 'n']];
    if (text.startsWith('SELECT item ||')) return [...EXPECTED_SCHEMA];
    if (text.startsWith('SELECT DISTINCT ON (hash_min)')) {
      return this.shards.map(({ hashMin, pair }) => {
        const [{ host, port }] = pair.hosts as [HostAddress];
        return [String(hashMin), String(this.pairs.indexOf(pair)), host, String(port)];
      });
    }
    this.violation ??= new Error(`the model does not know the statement ${text}`);
    return [];
  }

  /** @param onConflict what a stored key does with all rows (COPY), or with its own (INSERT) */
  async #insert(session: Session, rows: StoredRow[], onConflict: 'skip' | 'fail'): Promise<Reply> {
    if (session.server.isReadOnly) throw new ServerError('25006');
    const serverOf = ({ id }: StoredRow) => this.#reach(this.#serverOf(id, session.server), session);
    await session.server.untilUnlocked(() => rows.some(row => serverOf(row).isPending(row)), session);
    if (rows.some(row => serverOf(row).isAfterDropped(row))) throw new ServerError('42P01');
    const isStored = (row: StoredRow): boolean => serverOf(row).table.get(row.id)?.has(row.revision) === true;
    if (onConflict === 'fail' && rows.some(isStored)) {
      count(this.happened, 'a COPY finds a stored key');
      throw new ServerError('23505');
    }
    const parts = [...Map.groupBy(rows, serverOf)].map(([server, own]) => ({
      server,
      own: server.append(own),
    }));
    const changed = parts.filter(({ own }) => own.length > 0);
    const confirmed = await Promise.all(changed.map(({ server, own }) => server.commit(session, own)));
    // The last column says that the connection had lost `synchronous_commit`.
    const isSettingLost = !this.isCitus && this.scheduler.happens(this.faults.settingLost);
    if (isSettingLost) count(this.happened, 'a connection has lost synchronous_commit');
    const end = this.isCitus ? [] : [isSettingLost ? 'on' : null];
    const inserted = changed.flatMap(({ own }) => own.map(({ id }) => [String(id), ...end]));
    const replied = onConflict === 'fail' ? [[null, isSettingLost ? 'on' : null]] : inserted;
    return { rows: replied, hasWarning: confirmed.includes(false) };
  }

  /** As `confirmLatest` of `CITUS`: a message on each server that stores one of the ids. */
  async #confirm(session: Session, ids: bigint[]): Promise<Reply> {
    const servers = ids.flatMap(id => {
      const server = this.#reach(this.#serverOf(id, session.server), session);
      return server.table.has(id) ? [server] : [];
    });
    return this.isSynchronous ? await this.#emit(session, servers) : { rows: [], hasWarning: false };
  }

  /** As `confirmLatest` of `CITUS` for a plant without a row. */
  async #confirmMissing(session: Session, id: bigint): Promise<Reply> {
    const server = this.#reach(this.#serverOf(id, session.server), session);
    return this.isSynchronous ? await this.#emit(session, [server]) : { rows: [], hasWarning: false };
  }

  async #emit(session: Session, servers: ModelServer[]): Promise<Reply> {
    if (session.server.isReadOnly) throw new ServerError('25006');
    count(this.happened, 'a commit confirms earlier ones');
    for (const server of new Set(servers)) server.appendMessage();
    const confirmed = await Promise.all([...new Set(servers)].map(server => server.commit(session, [])));
    return { rows: [['0/0']], hasWarning: confirmed.includes(false) };
  }
}

function rowsOf(server: ModelServer): StoredRow[] {
  return [...server.table.values()].flatMap(rows => [...rows.values()]);
}

function insertedRows(values: unknown[]): StoredRow[] {
  return Array.from({ length: values.length / COLUMNS }, (_, row) => {
    const own = values.slice(row * COLUMNS, (row + 1) * COLUMNS);
    return storedRow(own.map(value => (value === undefined ? null : String(value))));
  });
}

/** Reads the text format of COPY. */
function copiedRows(text: string): StoredRow[] {
  const unescaped = (cell: string): string | null =>
    cell === '\\N'
      ? null
      : cell.replace(/\\(.)/g, (_, character: string) => COPY_ESCAPES[character] ?? character);
  return text
    .split('\n')
    .slice(0, -1)
    .map(line => storedRow(line.split('\t').map(unescaped)));
}

const COPY_ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t' };

function storedRow(cells: TextRow): StoredRow {
  const [id, revision] = cells;
  return { id: BigInt(id!), revision: Number(revision), cells, visibleAt: undefined };
}

function ordered(rows: StoredRow[]): TextRow[] {
  return rows.sort((one, other) => one.revision - other.revision).map(({ cells }) => cells);
}

function idsOf(values: unknown[] = []): bigint[] {
  return values.flat().filter(value => typeof value === 'bigint');
}
