import type { NewStoredToken, StoredToken, TokenGroup } from '../core/tokens/stored-token.ts';
import type { CommandRun } from './command-runs.ts';
import { type DamageRecord, knownDamage } from './damage-record.ts';
import { numberOf, type Row } from './revision-rows.ts';
import { allTokens, NEXT_CHANGE_NUMBER, TOKEN_COLUMNS, tokenOf, tokensOfGroup } from './token-rows.ts';

/** The tokens of a store, and what it keeps for the console. Both engines run the same SQL. */
export abstract class OperatorTables {
  /** A {@link Query}, whose change is durable when it returns, and unknown after a failure. */
  protected abstract query(text: string, values: unknown[]): Promise<Row[]>;

  /** Reads rows that decide no response to a plant, and have no parameters. */
  protected read(text: string): Promise<Row[]> {
    return this.query(text, []);
  }

  /** SQL of the fingerprint of a group, if it depends on the tokens alone. */
  protected readonly tokenDigest?: string;

  abstract probe(): Promise<void>;

  /**
   * A text for each group of tokens that has any. It changes whenever another connection creates or
   * revokes a token of the group, even when a failover or a restored backup reuses a change number.
   * Other commits may change it, too.
   */
  abstract tokenFingerprints(): Promise<ReadonlyMap<number, string>>;

  tokensOfGroup(group: number): Promise<TokenGroup> {
    return tokensOfGroup((text, values) => this.query(text, values), group, this.tokenDigest);
  }

  async hasPlants(): Promise<boolean> {
    return (await this.query('SELECT 1 FROM plant_revision LIMIT 1', [])).length > 0;
  }

  /** @returns the token as it is stored, or undefined when its label is taken */
  async createToken({ hash, label, createdAt, expiresAt }: NewStoredToken): Promise<StoredToken | undefined> {
    const insert = `INSERT INTO token (id, hash, label, created_at, expires_at, change_number)
      VALUES ((SELECT coalesce(max(id), 0) + 1 FROM token), $1, $2, $3, $4, ${NEXT_CHANGE_NUMBER})
      ON CONFLICT DO NOTHING RETURNING ${TOKEN_COLUMNS}`;
    for (;;) {
      const [created] = await this.query(insert, [hash, label, createdAt, expiresAt]);
      if (created !== undefined) return tokenOf(created);
      const existing = await this.#token('label = $1 OR hash = $2', [label, hash]);
      if (existing?.hash === hash && existing.label === label) return await this.#onceDurable(existing);
      if (existing !== undefined) return undefined;
      // Another connection took the id or the change number at the same time.
    }
  }

  tokens(): Promise<StoredToken[]> {
    return allTokens((text, values) => this.query(text, values));
  }

  /** Revokes a token permanently. @returns undefined when no token has this label */
  async revokeToken(label: string, revokedAt: number): Promise<StoredToken | undefined> {
    const update = `UPDATE token SET revoked_at = $1, change_number = ${NEXT_CHANGE_NUMBER}
      WHERE label = $2 AND revoked_at IS NULL RETURNING ${TOKEN_COLUMNS}`;
    const [revoked] = await this.query(update, [revokedAt, label]);
    if (revoked !== undefined) return tokenOf(revoked);
    const existing = await this.#token('label = $1', [label]);
    return existing && (await this.#onceDurable(existing));
  }

  /** Stores the day (`YYYY-MM-DD`) on which these tokens were last accepted. */
  async recordTokenUse(tokenIds: number[], day: string): Promise<void> {
    if (tokenIds.length === 0) return;
    // One statement, since a flush for each token would delay the plants behind it.
    const update = `UPDATE token SET last_used_day = $1
      WHERE id IN (${parameters(tokenIds, 2)}) AND (last_used_day IS NULL OR last_used_day < $1)`;
    await this.query(update, [day, ...tokenIds]);
  }

  /** Stores the SHA-256 of a code that signs in to the console once. Deletes all that have expired. */
  async createConsoleCode(hash: string, expiresAt: number): Promise<void> {
    await this.#createExpiring('console_code', hash, expiresAt);
  }

  /** Deletes codes. @returns the valid ones, each to one caller in all instances */
  async takeConsoleCodes(hashes: string[], now: number): Promise<string[]> {
    const taken = await this.#rowsOf(
      hashes,
      among => `DELETE FROM console_code WHERE hash IN (${among}) RETURNING hash, expires_at`,
    );
    return taken.filter(([, expiresAt]) => numberOf(expiresAt) > now).map(([hash]) => String(hash));
  }

  /** @param key the SHA-256 of the secret of the session. Deletes all sessions that have expired. */
  async createConsoleSession(key: string, expiresAt: number): Promise<void> {
    await this.#createExpiring('console_session', key, expiresAt);
  }

  /** When each valid session of the console ends, ms since 1970. */
  async consoleSessions(keys: string[], now: number): Promise<Map<string, number>> {
    const rows = await this.#rowsOf(
      keys,
      among => `SELECT hash, expires_at FROM console_session WHERE hash IN (${among})`,
    );
    const ends = rows.map(([key, expiresAt]) => [String(key), numberOf(expiresAt)] as const);
    return new Map(ends.filter(([, expiresAt]) => expiresAt > now));
  }

  /** Moves the end of a session, unless the session has ended. */
  async extendConsoleSession(key: string, expiresAt: number): Promise<void> {
    await this.query('UPDATE console_session SET expires_at = $1 WHERE hash = $2', [expiresAt, key]);
  }

  /** Ends a session in all instances. */
  async endConsoleSession(key: string): Promise<void> {
    await this.query('DELETE FROM console_session WHERE hash = $1', [key]);
  }

  /** Notes a run of a command. It replaces the last one of this command. */
  async recordRun({ command, endedAt, hasSucceeded, result }: CommandRun): Promise<void> {
    const upsert = `INSERT INTO last_run (command, ended_at, has_succeeded, result)
      VALUES ($1, $2, $3, $4) ON CONFLICT (command) DO UPDATE SET
        ended_at = excluded.ended_at, has_succeeded = excluded.has_succeeded, result = excluded.result`;
    await this.query(upsert, [command, endedAt, Number(hasSucceeded), result]);
  }

  /** The last run of each command that has one. */
  async lastRuns(): Promise<CommandRun[]> {
    const rows = await this.read(LAST_RUNS);
    return rows.map(([command, endedAt, hasSucceeded, result]) => ({
      command: command as CommandRun['command'],
      endedAt: numberOf(endedAt),
      hasSucceeded: numberOf(hasSucceeded) === 1,
      result: String(result),
    }));
  }

  /** Remembers damage for all instances. It replaces the damage that was met before. */
  async recordDamage({ metAt, metBy }: DamageRecord): Promise<void> {
    const upsert = `INSERT INTO known_damage (id, met_at, met_by) VALUES (1, $1, $2)
      ON CONFLICT (id) DO UPDATE SET met_at = excluded.met_at, met_by = excluded.met_by`;
    await this.query(upsert, [metAt, metBy]);
  }

  /** @returns undefined: the store knows of no damage */
  knownDamage(): Promise<DamageRecord | undefined> {
    return knownDamage(text => this.read(text));
  }

  /** Forgets damage that is repaired, unless other damage has replaced it. */
  async forgetDamage({ metAt, metBy }: DamageRecord): Promise<void> {
    await this.query('DELETE FROM known_damage WHERE met_at = $1 AND met_by = $2', [metAt, metBy]);
  }

  async #createExpiring(
    table: 'console_code' | 'console_session',
    hash: string,
    expiresAt: number,
  ): Promise<void> {
    await this.query(`DELETE FROM ${table} WHERE expires_at <= $1`, [Date.now()]);
    // After a lost result the row exists, and a second attempt changes nothing.
    const insert = `INSERT INTO ${table} (hash, expires_at) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING`;
    await this.query(insert, [hash, expiresAt]);
  }

  /** @param statement makes a statement for the rows among these parameters */
  async #rowsOf(hashes: string[], statement: (among: string) => string): Promise<Row[]> {
    const rows: Row[] = [];
    // A statement has at most some 30,000 parameters, and guesses may be more.
    for (let first = 0; first < hashes.length; first += HASHES_AT_A_TIME_MAX) {
      const some = hashes.slice(first, first + HASHES_AT_A_TIME_MAX);
      rows.push(...(await this.query(statement(parameters(some)), some)));
    }
    return rows;
  }

  async #token(condition: string, values: unknown[]): Promise<StoredToken | undefined> {
    const [row] = await this.query(`SELECT ${TOKEN_COLUMNS} FROM token WHERE ${condition}`, values);
    return row && tokenOf(row);
  }

  /**
   * An earlier attempt may have stored the token, and its result was lost. PostgreSQL shows such a
   * row before the standby has it. A later commit waits for the standby.
   */
  async #onceDurable(token: StoredToken): Promise<StoredToken> {
    await this.probe();
    return token;
  }
}

/** As a number, because only PostgreSQL has a type boolean. */
const LAST_RUNS = `SELECT command, ended_at, CASE WHEN has_succeeded THEN 1 ELSE 0 END, result
  FROM last_run ORDER BY command`;

const HASHES_AT_A_TIME_MAX = 1_000;

function parameters(values: readonly unknown[], first = 1): string {
  return values.map((_, index) => `$${first + index}`).join(', ');
}
