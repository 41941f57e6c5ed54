import {
  type PlantRevision,
  type PlantWrite,
  type RepeatedIdRule,
  StoreRejected,
  type WriteResult,
} from '../plant-store.ts';
import { revisionOf } from '../rows.ts';
import type { Connection } from './connection.ts';
import { kindOf } from './failure.ts';
import { latestRevisions, revisionInsert, revisionsAround, rowOf } from './revision-table.ts';

/** A revision that was sent for a write, and is not known to be stored. */
interface SentRevision extends PlantRevision {
  /** Place of the write in the batch. */
  index: number;
}

/**
 * Writes one batch of plants into PostgreSQL, where other instances write at the same time.
 *
 * It goes in rounds; most batches need one. The first revision of every plant is inserted `ON CONFLICT DO NOTHING`,
 * without a lookup before. The primary key decides among instances: a row that comes back is ours. For one that does
 * not, the latest revision is looked up, and the plant is unchanged, rejected, or goes into the next round with the
 * next revision. A round holds an id once, so plants with the same id keep their order, and a revision is only
 * written after the one before it was seen: no gaps. Each statement is a transaction of its own.
 *
 * When a statement fails, `run` may be called again with another connection. It first looks up what was sent, under
 * the number it was sent with, since another instance may have added revisions behind it. What it finds there is
 *
 * - our revision: it was stored by us (or by an instance that sent the same content with the same token in the same
 *   millisecond; then both say that they made it, which harms no plant);
 * - another revision: ours will never be stored there, and the next number is tried;
 * - nothing: our statement may still arrive, so the same number is sent again. The primary key makes one of the two
 *   do nothing; if it is the second, what took its place is looked up in the same way.
 *
 * A revision that was looked up may not have reached the standby yet, and be gone after a failover. So before a
 * result that rests on one is returned, a commit of our own is waited for, which is confirmed after everything before
 * it; and a further call of `run` forgets what an earlier one looked up. It remembers what the batch itself inserted:
 * otherwise an earlier plant of the batch with the same content would be taken for a later one.
 */
export class BatchCommit {
  readonly #writes: readonly PlantWrite[];
  readonly #repeatedIdRule: RepeatedIdRule;
  /** The same through all attempts: it tells a revision of ours from another's. */
  readonly #recordedAt = Date.now();
  readonly #results: WriteResult[];
  /** The writes that have no result yet, by id, in their order. */
  readonly #open = new Map<bigint, number[]>();
  /** The last revision of each plant, as far as this batch knows. */
  readonly #latest = new Map<bigint, PlantRevision>();
  /** The ids of which that was looked up, and not inserted by this batch: it may be gone after a failover. */
  readonly #lookedUp = new Set<bigint>();
  #sent: SentRevision[] = [];
  /** A statement that was given up may still be carried out, at any moment. */
  #mayBeStoredLate = false;
  /** Writes whose result rests on a revision that was looked up, and that no commit of ours has confirmed. */
  #unconfirmed: number[] = [];

  constructor(writes: readonly PlantWrite[], repeatedIdRule: RepeatedIdRule) {
    this.#writes = writes;
    this.#repeatedIdRule = repeatedIdRule;
    this.#results = new Array(writes.length);
    for (const [index, { plant }] of writes.entries()) {
      const earlier = this.#open.get(plant.id);
      if (earlier === undefined) this.#open.set(plant.id, [index]);
      else earlier.push(index);
    }
  }

  /** @returns one result for each write, in their order, all of them durable */
  async run(connection: Connection): Promise<WriteResult[]> {
    // The server may be another one than at the last attempt, and lack what was seen there.
    for (const id of this.#lookedUp) this.#latest.delete(id);
    this.#lookedUp.clear();
    if (this.#sent.length > 0) {
      this.#mayBeStoredLate = true;
      await this.#settleSent(connection);
    }
    this.#reopenUnconfirmed();
    for (;;) {
      const revisions = this.#nextRound();
      if (revisions.length === 0) break;
      const insertedIds = await this.#insert(connection, revisions);
      if (insertedIds.size > 0) this.#unconfirmed = [];
      const taken: SentRevision[] = [];
      for (const each of revisions) {
        if (insertedIds.has(each.plant.id)) this.#stored(each);
        else taken.push(each);
      }
      if (taken.length === 0) continue;
      if (this.#mayBeStoredLate) {
        this.#sent = taken;
        await this.#settleSent(connection);
      } else {
        await this.#lookUpLatest(connection, taken);
      }
    }
    if (this.#unconfirmed.length > 0) await confirmEverythingBefore(connection);
    return this.#results;
  }

  /** Takes back the results that an earlier attempt could not confirm. */
  #reopenUnconfirmed(): void {
    for (const index of this.#unconfirmed.reverse()) {
      const { id } = this.#writes[index]!.plant;
      this.#open.set(id, [index, ...(this.#open.get(id) ?? [])]);
    }
    this.#unconfirmed = [];
  }

  /** Gives a result to each write that needs no revision, and a revision to the first of each id that does. */
  #nextRound(): SentRevision[] {
    const revisions: SentRevision[] = [];
    for (const [id, indexes] of this.#open) {
      const revision = this.#nextRevision(id, indexes);
      if (revision === undefined) this.#open.delete(id);
      else revisions.push(revision);
    }
    // The same order everywhere, so that instances that insert the same ids never deadlock.
    return revisions.sort((a, b) => (a.plant.id < b.plant.id ? -1 : 1));
  }

  #nextRevision(id: bigint, indexes: number[]): SentRevision | undefined {
    const latest = this.#latest.get(id);
    for (let index = indexes[0]; index !== undefined; index = indexes[0]) {
      const { plant, recordedBy } = this.#writes[index]!;
      if (latest !== undefined && latest.plant.name === plant.name && latest.plant.tag === plant.tag) {
        this.#results[index] = { outcome: 'unchanged', revision: latest.revision };
      } else if (latest !== undefined && this.#repeatedIdRule === 'reject') {
        this.#results[index] = { rejected: 'idTaken' };
      } else {
        const revision = (latest?.revision ?? 0) + 1;
        return { index, plant, revision, recordedAt: this.#recordedAt, recordedBy };
      }
      this.#unconfirmed.push(index);
      indexes.shift();
    }
    return undefined;
  }

  /** @returns the ids of those that were inserted */
  async #insert(connection: Connection, revisions: SentRevision[]): Promise<Set<bigint>> {
    this.#sent = revisions;
    try {
      const inserted = await connection.commit(revisionInsert(revisions));
      this.#sent = [];
      return new Set(inserted.map(([id]) => BigInt(id!)));
    } catch (error) {
      // The server says that nothing was done: what is stored under these numbers is another's, however alike it is.
      if (kindOf(error) !== 'connectionLost' && !this.#mayBeStoredLate) this.#sent = [];
      throw error;
    }
  }

  #stored(sent: SentRevision): void {
    const { index, plant, revision } = sent;
    this.#results[index] = { outcome: revision === 1 ? 'created' : 'revised', revision };
    this.#latest.set(plant.id, sent);
    this.#lookedUp.delete(plant.id);
    this.#open.get(plant.id)!.shift();
  }

  async #lookUpLatest(connection: Connection, taken: SentRevision[]): Promise<void> {
    const ids = taken.map(({ plant }) => plant.id);
    const found = await latestRevisions(connection, ids);
    if (found.length < taken.length) {
      // Neither inserted nor there: it would be tried for ever.
      throw new StoreRejected(
        'PostgreSQL takes a plant and does not keep it; look for a trigger, a rule or row-level security on plant_revision',
      );
    }
    for (const revision of found) this.#found(revision);
  }

  #found(revision: PlantRevision): void {
    this.#latest.set(revision.plant.id, revision);
    this.#lookedUp.add(revision.plant.id);
  }

  /** Finds out which of the revisions that were sent are stored, and what is the latest of each id now. */
  async #settleSent(connection: Connection): Promise<void> {
    // With the one before each: should that have been lost in a failover, the number would leave a gap.
    const rows = await revisionsAround(connection, this.#sent);
    await confirmEverythingBefore(connection);
    const stored = new Set(rows.map(row => JSON.stringify(row)));
    const storedIds = new Set<bigint>();
    for (const sent of this.#sent) {
      this.#latest.delete(sent.plant.id);
      if (!stored.has(JSON.stringify(rowOf(sent)))) continue;
      this.#stored(sent);
      storedIds.add(sent.plant.id);
    }
    for (const row of rows) this.#found(revisionOf(row));
    this.#sent = [];
    // What rests on the revision before one that is stored, is stored.
    this.#unconfirmed = this.#unconfirmed.filter(index => !storedIds.has(this.#writes[index]!.plant.id));
  }
}

/**
 * Returns once every commit that could be seen before is as durable as this server makes commits.
 *
 * Only a synchronous standby makes a difference: PostgreSQL shows a commit to others after the flush to its own disk
 * and after the standby has it, unless that wait was cut short or the server crashed in it. A commit of our own that
 * waits for the standby waits for all before it; a message in the write-ahead log is the smallest there is
 * (https://www.postgresql.org/docs/current/functions-admin.html, `pg_logical_emit_message`).
 */
export async function confirmEverythingBefore(connection: Connection): Promise<void> {
  const [row] = await connection.run({
    text: `SELECT coalesce(current_setting('synchronous_standby_names', true), '')`,
  });
  if (row![0] === '') return;
  await connection.commit({ text: `SELECT pg_logical_emit_message(true, 'plant-store', '')` });
}
