import { ServerError, type Session } from './model-server.ts';
import { count, type Happened } from './part.ts';
import type { Scheduler } from './scheduler.ts';

/** The server cancels a statement that has waited for so long. */
const STATEMENT_TIMEOUT_MS = 1_750;
const POLL_MS = 5;

/** The locks of commands that have the table for themselves, as `pg_locks` names them. */
export type LoneMode = 'ExclusiveLock' | 'AccessExclusiveLock';

/**
 * The lock of `plant_revision` on the coordinator. Sessions share it, and a command that changes or
 * replaces the table has it alone. While a command waits, no session gets the lock.
 */
export class ModelTableLock {
  /** Another one when a command has replaced the table. */
  tableId = 1;
  readonly #scheduler: Scheduler;
  readonly #happened: Happened;
  readonly #sessions = new Set<Session>();
  #lone: { mode: LoneMode; isWaiting: boolean } | undefined;

  constructor(scheduler: Scheduler, happened: Happened) {
    this.#scheduler = scheduler;
    this.#happened = happened;
  }

  /** The modes for which commands wait. */
  get waitingModes(): LoneMode[] {
    return this.#lone?.isWaiting ? [this.#lone.mode] : [];
  }

  /** @throws {ServerError} after the timeout of the lock or of the statement */
  async share(session: Session, timeoutMs: number | undefined): Promise<void> {
    const sinceMs = this.#scheduler.now();
    while (this.#lone !== undefined) {
      await this.#scheduler.pause(POLL_MS);
      session.checkEnd();
      const waitedMs = this.#scheduler.now() - sinceMs;
      if (timeoutMs !== undefined && waitedMs >= timeoutMs) throw new ServerError('55P03');
      if (waitedMs >= STATEMENT_TIMEOUT_MS) throw new ServerError('57014');
    }
    this.#sessions.add(session);
  }

  /** At the end of the transaction. */
  release(session: Session): void {
    this.#sessions.delete(session);
  }

  /**
   * Waits until no session has the lock. The command does its work alone, in a transaction.
   *
   * @param isConnected whether the server still runs the command
   */
  async alone(
    mode: LoneMode,
    timeoutMs: number,
    isConnected: () => boolean,
    work: () => Promise<void>,
  ): Promise<void> {
    if (this.#lone !== undefined) return;
    const lone = { mode, isWaiting: true };
    this.#lone = lone;
    const sinceMs = this.#scheduler.now();
    let isTimedOut = false;
    while (!isTimedOut && isConnected() && this.#sessions.values().some(({ hasEnded }) => !hasEnded)) {
      await this.#scheduler.pause(POLL_MS);
      isTimedOut = this.#scheduler.now() - sinceMs >= timeoutMs;
    }
    lone.isWaiting = false;
    if (isTimedOut) count(this.#happened, `${mode}: a lock timeout`);
    if (!isTimedOut && isConnected()) {
      count(this.#happened, `${mode}: a command has the table`);
      await work();
    }
    this.#lone = undefined;
  }
}
