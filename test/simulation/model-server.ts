import type { TextRow } from '../../src/engines/postgres/connection.ts';
import { count, type Happened } from './part.ts';
import type { Scheduler } from './scheduler.ts';

/** The server cancels a statement that has waited for so long, but no wait for a standby. */
const STATEMENT_TIMEOUT_MS = 1_750;

/** An error of the server, as pg reports it. */
export class ServerError extends Error {
  readonly severity = 'ERROR';
  readonly code: string;

  constructor(code: string) {
    super(`the simulated server reports ${code}`);
    this.code = code;
  }
}

/** The process of the server has ended. Nobody gets a response. */
export class SessionEnded extends Error {}

/** A row of `plant_revision`. All servers that have it share it. */
export interface StoredRow {
  id: bigint;
  revision: number;
  cells: TextRow;
  /** When a statement could see it first. */
  visibleAt: number | undefined;
  /** Whether it was in a table that a command has dropped. */
  isDropped?: boolean;
}

/** What a transaction has written. Its place in the log is its number. */
type Commit = readonly StoredRow[];

/** One process of the server. It may execute a statement after its client has left. */
export class Session {
  server: ModelServer;
  hasEnded = false;
  isCancelled = false;
  transaction: 'none' | 'open' | 'failed' = 'none';
  /** Of the transaction. */
  lockTimeoutMs: number | undefined;
  /** Tells the client that the connection is closed. */
  readonly onEnd: () => void;
  /** Of the other servers of Citus, by their number, that it has a connection to. */
  readonly startsOfReached = new Map<number, number>();
  /** Each ends a wait for a standby. */
  readonly wakes = new Set<() => void>();

  constructor(server: ModelServer, onEnd: () => void) {
    this.server = server;
    this.onEnd = onEnd;
    server.sessions.add(this);
  }

  /** @param noticedMs how long the client does not notice it: its host may have vanished */
  end(noticedMs = 0): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.server.sessions.delete(this);
    for (const wake of this.wakes) wake();
    if (noticedMs === 0) this.onEnd();
    else this.server.scheduler.later(0, noticedMs, this.onEnd);
  }

  /** A cancel request. Only a statement that waits notices it. */
  cancel(): void {
    this.isCancelled = true;
    for (const wake of this.wakes) wake();
  }

  checkEnd(): void {
    if (this.hasEnded) throw new SessionEnded();
  }
}

/**
 * One server with its log. It is a primary or a standby, whose log is a prefix of that of its
 * primary.
 *
 * A commit is in the log at once. With a synchronous standby, its rows become visible when the
 * standby has it, or when the wait is cancelled, or when the server restarts after a crash. In the
 * last two cases a failover may lose rows that were visible.
 */
export class ModelServer {
  readonly scheduler: Scheduler;
  readonly #happened: Happened;
  readonly isSynchronous: boolean;
  readonly sessions = new Set<Session>();
  log: Commit[] = [];
  /** Visible rows. */
  readonly table = new Map<bigint, Map<number, StoredRow>>();
  /** Rows of transactions that wait for the standby. */
  readonly #pending = new Set<string>();
  #waits: { length: number; end: (isConfirmed: boolean) => void }[] = [];
  readonly #droppedIds = new Set<bigint>();
  #stops = 0;
  /** What this primary sends its log to. */
  standby: ModelServer | undefined;
  isConnectedToStandby = true;
  /** How often it became a primary, or the primary was started again. */
  starts = 0;
  isUp = true;
  /** When the last commit was confirmed, also by the standby. */
  confirmedAtMs = Number.NEGATIVE_INFINITY;
  /** When its host vanished last, so that clients did not notice it at once. */
  vanishedAtMs = Number.NEGATIVE_INFINITY;
  isPrimary = false;
  isReadOnly = false;
  isFull = false;
  hangsUntilMs = 0;

  constructor(scheduler: Scheduler, happened: Happened, isSynchronous: boolean) {
    this.scheduler = scheduler;
    this.#happened = happened;
    this.isSynchronous = isSynchronous;
  }

  get isQuiet(): boolean {
    const isReplicated = !this.isSynchronous || this.standby?.log.length === this.log.length;
    return this.isUp && this.#pending.size === 0 && isReplicated;
  }

  /** Waits while the server hangs. */
  async awake(session: Session): Promise<void> {
    session.checkEnd();
    while (this.hangsUntilMs > this.scheduler.now()) {
      await this.scheduler.pause(this.hangsUntilMs - this.scheduler.now() + 1);
      session.checkEnd();
    }
  }

  latest(id: bigint): StoredRow | undefined {
    const rows = this.table.get(id);
    return rows?.get(Math.max(...rows.keys()));
  }

  isPending({ id, revision }: StoredRow): boolean {
    return this.#pending.has(keyOf(id, revision));
  }

  /** @returns the rows that did not exist */
  append(rows: readonly StoredRow[]): StoredRow[] {
    const added: StoredRow[] = [];
    for (const row of rows) {
      const isDuplicate = added.some(({ id, revision }) => id === row.id && revision === row.revision);
      if (!isDuplicate && !this.table.get(row.id)?.has(row.revision)) added.push(row);
    }
    if (added.length > 0) this.log.push(added);
    return added;
  }

  /** An empty transaction, which waits for the standby as any other. */
  appendMessage(): void {
    this.log.push([]);
  }

  /** Waits for the standby. @returns false if the wait was cancelled, so there is a warning */
  async commit(session: Session, rows: readonly StoredRow[]): Promise<boolean> {
    const stops = this.#stops;
    const keys = rows.map(({ id, revision }) => keyOf(id, revision));
    for (const key of keys) this.#pending.add(key);
    const isConfirmed = !this.isSynchronous || (await this.#standbyHas(this.log.length, session));
    for (const key of keys) this.#pending.delete(key);
    if (isConfirmed) this.confirmedAtMs = this.scheduler.now();
    session.checkEnd();
    // Another server of Citus had passed the statement on.
    if (this.#stops !== stops) throw new ServerError('08006');
    this.show(rows.filter(row => !row.isDropped));
    return isConfirmed;
  }

  show(rows: readonly StoredRow[]): void {
    for (const row of rows) {
      row.visibleAt ??= this.scheduler.timestamp();
      this.table.getOrInsertComputed(row.id, () => new Map()).set(row.revision, row);
    }
  }

  /**
   * Whether a revision follows one that was dropped with its table. A batch that lost its lock may
   * leave such a gap. Nobody was told that any of its plants is stored, so this is not simulated.
   */
  isAfterDropped({ id, revision }: StoredRow): boolean {
    return this.#droppedIds.has(id) && revision > 1 && !this.table.get(id)?.has(revision - 1);
  }

  /** The table is replaced by another one with these rows. */
  keepOnly(copied: ReadonlySet<StoredRow>): void {
    for (const row of this.log.flat()) {
      row.isDropped = !copied.has(row);
      if (row.isDropped) this.#droppedIds.add(row.id);
    }
    this.log = this.log.map(rows => rows.filter(row => !row.isDropped));
    for (const [id, rows] of this.table) {
      for (const [revision, row] of rows) if (!copied.has(row)) rows.delete(revision);
      if (rows.size === 0) this.table.delete(id);
    }
  }

  /** Ends every process. The rows of commits in the log become visible when it starts again. */
  stop(noticedMs = 0): void {
    if (noticedMs > 0) this.vanishedAtMs = this.scheduler.now();
    this.isUp = false;
    this.#stops++;
    for (const session of [...this.sessions]) session.end(noticedMs);
    for (const wait of [...this.#waits]) wait.end(false);
  }

  /** As a primary. */
  start(): void {
    this.isUp = true;
    this.isPrimary = true;
    this.starts++;
    this.table.clear();
    for (const rows of this.log) this.show(rows);
  }

  /** Becomes the standby of a primary, and forgets what that one lacks. */
  follow(primary: ModelServer): void {
    this.stop();
    this.isUp = true;
    this.isPrimary = false;
    this.isReadOnly = false;
    this.isFull = false;
    this.hangsUntilMs = 0;
    this.standby = undefined;
    this.log = [...primary.log];
    this.table.clear();
    primary.standby = this;
    primary.replicate();
  }

  replicate(): void {
    const { standby } = this;
    if (!this.isSynchronous || standby === undefined || !this.isConnectedToStandby) return;
    const { length } = this.log;
    this.scheduler.later(0, 4, () => {
      if (this.standby !== standby || !this.isConnectedToStandby || !this.isUp) return;
      for (let at = standby.log.length; at < length; at++) standby.log.push(this.log[at]!);
      // The standby may take over now: the commits are confirmed, and also survive.
      this.scheduler.later(0, 2, () => {
        for (const wait of [...this.#waits]) if (wait.length <= length) wait.end(true);
      });
    });
  }

  /** As when an operator cancels a backend. */
  cancelWait(): void {
    if (this.#waits.length === 0) return;
    count(this.#happened, 'an operator cancels the wait for a standby');
    this.scheduler.pick(...this.#waits).end(false);
  }

  /** A transaction that inserts the same row must end first. */
  async untilUnlocked(isLocked: () => boolean, session: Session): Promise<void> {
    const sinceMs = this.scheduler.now();
    for (let pauseMs = 1; isLocked(); pauseMs = Math.min(64, pauseMs * 2)) {
      if (pauseMs === 1) count(this.#happened, 'an insert waits for a lock');
      await this.scheduler.pause(1, pauseMs);
      session.checkEnd();
      if (!session.isCancelled && this.scheduler.now() - sinceMs < STATEMENT_TIMEOUT_MS) continue;
      count(this.#happened, 'a statement is cancelled while it waits for a lock');
      throw new ServerError('57014');
    }
  }

  async #standbyHas(length: number, session: Session): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const wait = { length, end: resolve };
    this.#waits.push(wait);
    const wake = (): void => resolve(false);
    session.wakes.add(wake);
    if (session.isCancelled) resolve(false);
    this.replicate();
    const isConfirmed = await promise;
    session.wakes.delete(wake);
    this.#waits = this.#waits.filter(each => each !== wait);
    return isConfirmed;
  }
}

function keyOf(id: bigint, revision: number): string {
  return `${id} ${revision}`;
}
