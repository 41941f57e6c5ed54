import { type Clock, SYSTEM_CLOCK } from '../../core/clock.ts';
import { isIntact, revisionChecksum } from '../../core/commit/checksum.ts';
import type { PlantWrite, RepeatedIdRule, WriteResult } from '../../core/commit/plant-commits.ts';
import type { PlantRevision } from '../../core/commit/plant-revision.ts';
import { StoreRejected } from '../../core/commit/store-errors.ts';
import { isSameContent, type NewPlant } from '../../core/contract/plant.ts';
import { revisionOf } from '../revision-rows.ts';
import type { Connection } from './connection.ts';
import { ConnectionLost, INSUFFICIENT_PRIVILEGE, kindOf, sqlStateOf } from './failure.ts';
import { latestRevisions, revisionInsert, revisionsAround, rowOf } from './revision-table.ts';

/** A revision that was sent for the write with this index, and is not known to be stored. */
interface SentRevision extends PlantRevision {
  index: number;
  /** The revision before it; undefined if it is the first. */
  base: PlantRevision | undefined;
}

/**
 * Writes one batch of plants into PostgreSQL, while other instances may write the same ids.
 *
 * The batch is written in rounds; most batches need one. A round has at most one revision of each
 * id, so plants with the same id keep their order and revision numbers have no gaps. Each statement
 * is a transaction. The primary key decides between instances:
 *
 * | write is | event                                              | next state                   |
 * | -------- | -------------------------------------------------- | ---------------------------- |
 * | open     | its latest revision is damaged                     | settled: `damaged`           |
 * | open     | its latest revision has the same content           | settled: unchanged           |
 * | open     | its latest revision differs, the rule is `reject`  | settled: `idTaken`           |
 * | open     | otherwise: `INSERT ... ON CONFLICT DO NOTHING`     | sent, with the next revision |
 * | sent     | the server returns the row                         | settled: created or revised  |
 * | sent     | the server returns no row: look up the latest      | open                         |
 * | sent     | the server reports an error                        | open; on Citus: unknown      |
 * | sent     | the connection is lost, or was lost before         | unknown, see below           |
 *
 * After a failure `run` may be called again with another connection. It then looks up each unknown
 * revision under the number with which it was sent, and may find there
 *
 * - our revision: this batch stored it;
 * - another revision: ours can no longer be stored there, so the next number is tried;
 * - no revision: our statement may still be executed late, so the same number is sent again. The
 *   primary key makes one of the two do nothing. If it is the second, the row is looked up.
 *
 * A failover may lose a looked-up revision, because the standby may lack it. Before `run` returns a
 * result that depends on it, it waits for a new commit, which confirms all earlier ones. A further
 * call of `run` forgets what was looked up. It keeps what the batch inserted: otherwise an earlier
 * plant of the batch, found in the store, could settle a later plant with the same content.
 */
export class BatchCommit {
  readonly #writes: readonly PlantWrite[];
  readonly #repeatedIdRule: RepeatedIdRule;
  /**
   * The same for all attempts: it distinguishes our revision from one of another instance. Two that
   * store the same content for one token in the same millisecond may both report `created`.
   */
  readonly #recordedAt: number;
  readonly #results: WriteResult[];
  /** The writes without a result, by id, in their order. */
  readonly #open = new Map<bigint, number[]>();
  /** The last revision of each id that this batch inserted. */
  readonly #inserted = new Map<bigint, PlantRevision>();
  /** The latest revision of each id, if it was looked up since. A failover may lose it. */
  readonly #lookedUp = new Map<bigint, PlantRevision>();
  #sent: SentRevision[] = [];
  /** The server may still execute a statement of this batch that timed out. */
  #mayBeStoredLate = false;
  /** Settled writes without a revision of their own, until a commit confirms what they depend on. */
  #unconfirmed: number[] = [];

  constructor(writes: readonly PlantWrite[], repeatedIdRule: RepeatedIdRule, clock: Clock = SYSTEM_CLOCK) {
    this.#writes = writes;
    this.#repeatedIdRule = repeatedIdRule;
    this.#recordedAt = clock.wallNow();
    this.#results = new Array(writes.length);
    for (const [index, { plant }] of writes.entries()) {
      const earlier = this.#open.get(plant.id);
      if (earlier === undefined) this.#open.set(plant.id, [index]);
      else earlier.push(index);
    }
  }

  /** @returns one result for each write, in their order; all are durable */
  async run(connection: Connection): Promise<WriteResult[]> {
    // This server may lack revisions that the last attempt looked up on another one.
    this.#lookedUp.clear();
    if (this.#sent.length > 0) {
      this.#mayBeStoredLate = true;
      await this.#settleSent(connection);
    }
    // An earlier attempt could not confirm these results.
    for (const index of this.#unconfirmed.splice(0).reverse()) {
      const { id } = this.#writes[index]!.plant;
      this.#open.set(id, [index, ...(this.#open.get(id) ?? [])]);
    }
    for (;;) {
      const revisions = this.#nextRound();
      if (revisions.length === 0) break;
      const insertedIds = await this.#insert(connection, revisions);
      this.#confirmed(insertedIds, connection.isCitus);
      const conflicting: SentRevision[] = [];
      for (const each of revisions) {
        if (insertedIds.has(each.plant.id)) this.#stored(each);
        else conflicting.push(each);
      }
      if (conflicting.length === 0) continue;
      if (this.#mayBeStoredLate) {
        this.#sent = conflicting;
        await this.#settleSent(connection);
      } else {
        await this.#lookUpLatest(connection, conflicting);
      }
    }
    const unconfirmed = this.#unconfirmed.map(index => this.#writes[index]!);
    if (unconfirmed.length > 0) await confirmLatest(connection, unconfirmed);
    return this.#results;
  }

  /** Settles writes that need no revision. @returns the next revision of each id that needs one */
  #nextRound(): SentRevision[] {
    const revisions: SentRevision[] = [];
    for (const [id, indexes] of this.#open) {
      const revision = this.#nextRevision(id, indexes);
      if (revision === undefined) this.#open.delete(id);
      else revisions.push(revision);
    }
    // All instances insert in the same order, so they never deadlock.
    return revisions.sort((a, b) => (a.plant.id < b.plant.id ? -1 : 1));
  }

  #nextRevision(id: bigint, indexes: number[]): SentRevision | undefined {
    const lookedUp = this.#lookedUp.get(id);
    const latest = lookedUp ?? this.#inserted.get(id);
    // What this batch inserted needs no check.
    const isDamaged = lookedUp !== undefined && !isIntact(lookedUp);
    for (let index = indexes[0]; index !== undefined; index = indexes[0]) {
      const { plant, contentChecksum, recordedBy } = this.#writes[index]!;
      if (isDamaged) {
        this.#results[index] = { rejected: 'damaged' };
      } else if (latest !== undefined && isSameContent(latest.plant, plant)) {
        this.#results[index] = { outcome: 'unchanged', revision: latest.revision };
      } else if (latest !== undefined && this.#repeatedIdRule === 'reject') {
        this.#results[index] = { rejected: 'idTaken' };
      } else {
        const numbers = { revision: (latest?.revision ?? 0) + 1, recordedAt: this.#recordedAt, recordedBy };
        return {
          index,
          base: latest,
          plant,
          ...numbers,
          checksum: revisionChecksum(contentChecksum, numbers),
        };
      }
      this.#unconfirmed.push(index);
      indexes.shift();
    }
    return undefined;
  }

  async #insert(connection: Connection, revisions: SentRevision[]): Promise<Set<bigint>> {
    this.#sent = revisions;
    try {
      const inserted = await connection.commit(revisionInsert(revisions, connection.isCitus));
      // The commit is durable, but later ones would not be: another connection looks it up.
      if (inserted.some(([, flush]) => flush === 'on'))
        throw new ConnectionLost(
          'synchronous_commit of the connection was lost; is there a pooler in between?',
        );
      this.#sent = [];
      return new Set(inserted.map(([id]) => BigInt(id!)));
    } catch (error) {
      // After an error of the server nothing is inserted: a revision with such a number is not
      // ours. But on Citus another server may have committed it.
      const isUnknown = connection.isCitus || ['connectionLost', 'internal'].includes(kindOf(error));
      if (!isUnknown && !this.#mayBeStoredLate) this.#sent = [];
      throw error;
    }
  }

  #stored(sent: SentRevision): void {
    const { index, plant, revision } = sent;
    this.#results[index] = { outcome: revision === 1 ? 'created' : 'revised', revision };
    this.#inserted.set(plant.id, sent);
    this.#lookedUp.delete(plant.id);
    this.#open.get(plant.id)!.shift();
  }

  async #lookUpLatest(connection: Connection, conflicting: SentRevision[]): Promise<void> {
    const ids = conflicting.map(({ plant }) => plant.id);
    const found = await latestRevisions(connection, ids);
    if (found.length < conflicting.length) {
      // A row that is neither inserted nor found would be retried without end.
      throw new StoreRejected(
        'PostgreSQL accepts a plant but does not store it; `npx plant-store verify` names what was changed',
      );
    }
    for (const revision of found) this.#found(revision);
    // A row whose id is damaged is found by the id in the index. It has another id itself.
    const damaged = found.find(revision => !isIntact(revision));
    if (damaged === undefined) return;
    const foundIds = new Set(found.map(({ plant }) => plant.id));
    for (const id of ids) if (!foundIds.has(id)) this.#found(damaged, id);
  }

  #found(revision: PlantRevision, id = revision.plant.id): void {
    this.#lookedUp.set(id, revision);
  }

  /** Looks up which of the sent revisions are stored, and the latest revision of each id. */
  async #settleSent(connection: Connection): Promise<void> {
    // If a failover lost the revision before ours, our number would leave a gap.
    const rows = await revisionsAround(connection, this.#sent);
    await confirmLatest(connection, this.#sent);
    const stored = new Set(rows.map(row => JSON.stringify(row)));
    const isStored = (revision: PlantRevision): boolean => stored.has(JSON.stringify(rowOf(revision)));
    const confirmedIds = new Set<bigint>();
    for (const sent of this.#sent) {
      const { plant, base } = sent;
      this.#lookedUp.delete(plant.id);
      if (isStored(sent)) this.#stored(sent);
      else if (base === undefined || !isStored(base)) continue;
      confirmedIds.add(plant.id);
    }
    for (const row of rows) this.#found(revisionOf(row));
    for (const { plant } of this.#sent) {
      const latest = this.#lookedUp.get(plant.id)?.revision ?? 0;
      // Without a synchronous standby, a failover may lose what this batch inserted. Its result stays.
      if ((this.#inserted.get(plant.id)?.revision ?? 0) > latest) this.#inserted.delete(plant.id);
    }
    this.#sent = [];
    // The commit above confirms the base of each sent revision, and the results that depend on it.
    // They stay settled even if the revision is not stored yet: reopened, they could take its number.
    this.#confirmed(confirmedIds, true);
  }

  /**
   * A commit confirms all earlier ones of its server. Citus may have used several servers, but each
   * id has one. There, too, a result must not be opened again after a later plant of its id is stored.
   */
  #confirmed(ids: ReadonlySet<bigint>, onlyTheseIds: boolean): void {
    if (ids.size === 0) return;
    const staysUnconfirmed = (index: number) => onlyTheseIds && !ids.has(this.#writes[index]!.plant.id);
    this.#unconfirmed = this.#unconfirmed.filter(staysUnconfirmed);
  }
}

/**
 * Returns when all commits that were visible before are as durable as this server makes commits.
 *
 * A synchronous standby may lack a visible commit if the wait for it was cancelled or the server
 * crashed. A new commit waits for the standby, and so for all commits before it. The smallest one
 * is a message in the write-ahead log
 * (https://www.postgresql.org/docs/current/functions-admin.html, `pg_logical_emit_message`).
 */
export async function confirmEverythingBefore(connection: Connection): Promise<void> {
  const [row] = await connection.run({
    text: `SELECT coalesce(current_setting('synchronous_standby_names', true), '')`,
  });
  if (row![0] === '') return;
  try {
    await connection.commit({ text: `SELECT pg_logical_emit_message(true, 'plant-store', '')` });
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    // The number of parameters depends on the version.
    const [grant] = await connection.run({
      text: `SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', oid::regprocedure, current_user)
        FROM pg_proc WHERE proname = 'pg_logical_emit_message' AND 'text'::regtype = proargtypes[2]`,
    });
    throw new StoreRejected(
      `a synchronous standby must confirm plants, for which this user lacks a right; run this in the database as a superuser: ${grant![0]}`,
      { cause: error },
    );
  }
}

/** Returns when the latest revisions of these plants are durable, also those of other instances. */
async function confirmLatest(connection: Connection, plants: readonly { plant: NewPlant }[]): Promise<void> {
  if (!connection.isCitus) return await confirmEverythingBefore(connection);
  // A shard may have moved to another server. There this statement is executed, too.
  await connection.commit({
    name: 'confirm',
    text: `SELECT CASE WHEN current_setting('synchronous_standby_names') <> ''
        THEN pg_logical_emit_message(true, 'plant-store', '') END
      FROM plant_revision WHERE id = ANY($1::bigint[]) LIMIT 1`,
    values: [plants.map(({ plant }) => plant.id)],
  });
}
