import { type DamageRecord, knownDamage } from './damage-record.ts';
import { numberOf, parameters, type Query, type Row, type TableAccess } from './table-access.ts';

/** The last run of a command that the operator should know of. */
export interface CommandRun {
  command: 'backup' | 'verify';
  /** Milliseconds since 1970 UTC. */
  endedAt: number;
  /** Whether it found no fault. */
  hasSucceeded: boolean;
  /** In words, for the operator. It begins with the first fault, if the run found one. */
  result: string;
}

/**
 * The tables of a store for its operators: codes and sessions of the console, runs of commands, and
 * known damage. Both engines run the same SQL.
 */
export class OperatorTables {
  readonly #access: TableAccess;

  constructor(access: TableAccess) {
    this.#access = access;
  }

  /** Stores the SHA-256 of a code that signs in to the console once. Deletes expired codes. */
  async createConsoleCode(hash: string, expiresAt: number): Promise<void> {
    await this.#createExpiring('console_code', hash, expiresAt);
  }

  /** Deletes codes. @returns those that were valid, each to only one caller among all instances */
  async takeConsoleCodes(hashes: string[], now: number): Promise<string[]> {
    const taken = await rowsOf(
      this.#access.writeRows,
      hashes,
      among => `DELETE FROM console_code WHERE hash IN (${among}) RETURNING hash, expires_at`,
    );
    return taken.filter(([, expiresAt]) => numberOf(expiresAt) > now).map(([hash]) => String(hash));
  }

  /**
   * Stores a session of the console. Deletes expired sessions.
   *
   * @param key the SHA-256 of the secret of the session
   */
  async createConsoleSession(key: string, expiresAt: number): Promise<void> {
    await this.#createExpiring('console_session', key, expiresAt);
  }

  /** Returns when each valid session of the console expires, in ms since 1970 UTC. */
  async consoleSessions(keys: string[], now: number): Promise<Map<string, number>> {
    const rows = await rowsOf(
      this.#access.readRows,
      keys,
      among => `SELECT hash, expires_at FROM console_session WHERE hash IN (${among})`,
    );
    const ends = rows.map(([key, expiresAt]) => [String(key), numberOf(expiresAt)] as const);
    return new Map(ends.filter(([, expiresAt]) => expiresAt > now));
  }

  /** Moves the end of a session, unless the session has ended. */
  async extendConsoleSession(key: string, expiresAt: number): Promise<void> {
    await this.#access.writeRows('UPDATE console_session SET expires_at = $1 WHERE hash = $2', [
      expiresAt,
      key,
    ]);
  }

  /** Ends a session in all instances. */
  async endConsoleSession(key: string): Promise<void> {
    await this.#access.writeRows('DELETE FROM console_session WHERE hash = $1', [key]);
  }

  /** Stores the run of a command in place of the last run of the same command. */
  async recordRun({ command, endedAt, hasSucceeded, result }: CommandRun): Promise<void> {
    const upsert = `INSERT INTO last_run (command, ended_at, has_succeeded, result)
      VALUES ($1, $2, $3, $4) ON CONFLICT (command) DO UPDATE SET
        ended_at = excluded.ended_at, has_succeeded = excluded.has_succeeded, result = excluded.result`;
    await this.#access.writeRows(upsert, [command, endedAt, Number(hasSucceeded), result]);
  }

  /** The last run of each command that has one. */
  async lastRuns(): Promise<CommandRun[]> {
    const rows = await this.#access.readRows(LAST_RUNS, []);
    return rows.map(([command, endedAt, hasSucceeded, result]) => ({
      command: command as CommandRun['command'],
      endedAt: numberOf(endedAt),
      hasSucceeded: numberOf(hasSucceeded) === 1,
      result: String(result),
    }));
  }

  /** Stores damage for all instances, in place of damage that was found before. */
  async recordDamage({ foundAt, foundBy }: DamageRecord): Promise<void> {
    const upsert = `INSERT INTO known_damage (id, found_at, found_by) VALUES (1, $1, $2)
      ON CONFLICT (id) DO UPDATE SET found_at = excluded.found_at, found_by = excluded.found_by`;
    await this.#access.writeRows(upsert, [foundAt, foundBy]);
  }

  /** @returns undefined if the store has no record of damage */
  knownDamage(): Promise<DamageRecord | undefined> {
    return knownDamage(this.#access.readRows);
  }

  /** Deletes the record of repaired damage, unless other damage has replaced the record. */
  async forgetDamage({ foundAt, foundBy }: DamageRecord): Promise<void> {
    await this.#access.writeRows('DELETE FROM known_damage WHERE found_at = $1 AND found_by = $2', [
      foundAt,
      foundBy,
    ]);
  }

  async #createExpiring(
    table: 'console_code' | 'console_session',
    hash: string,
    expiresAt: number,
  ): Promise<void> {
    await this.#access.writeRows(`DELETE FROM ${table} WHERE expires_at <= $1`, [Date.now()]);
    // Nothing changes if the row exists, because the result of an earlier attempt was lost.
    const insert = `INSERT INTO ${table} (hash, expires_at) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING`;
    await this.#access.writeRows(insert, [hash, expiresAt]);
  }
}

/** `has_succeeded` is read as a number, because SQLite has no type boolean. */
const LAST_RUNS = `SELECT command, ended_at, CASE WHEN has_succeeded THEN 1 ELSE 0 END, result
  FROM last_run ORDER BY command`;

const HASHES_AT_A_TIME_MAX = 1_000;

/** @param statement returns the SQL for the hashes of a parameter list, such as `$1, $2` */
async function rowsOf(query: Query, hashes: string[], statement: (among: string) => string): Promise<Row[]> {
  const rows: Row[] = [];
  // A statement has at most about 30,000 parameters, and there may be more guessed codes.
  for (let first = 0; first < hashes.length; first += HASHES_AT_A_TIME_MAX) {
    const some = hashes.slice(first, first + HASHES_AT_A_TIME_MAX);
    rows.push(...(await query(statement(parameters(some)), some)));
  }
  return rows;
}
