import type { PlantWrite, RepeatedIdRule, WriteResult } from '../plant-store.ts';
import type { Connection, TextRow } from './connection.ts';
import { InsertDoesNothing, kindOf } from './failure.ts';
import { type NewRevision, revisionInsert, rowOf } from './revision-insert.ts';
import { latestRevisions, neighbourhoods } from './revision-looks.ts';

/** The last revision of a plant, as far as this batch knows. */
interface Latest {
  revision: number;
  name: string;
  tag: string | null;
  /** Inserted by this batch, so confirmed; what was looked up may be gone after a failover. */
  isOurs: boolean;
}

/** A revision that was sent for a write, and is not known to be stored. */
interface SentRevision extends NewRevision {
  /** Place of the write in the batch. */
  index: number;
}

/**
 * A batch of plants on its way into PostgreSQL, where other instances write at the same time.
 *
 * It goes in rounds, and in most batches there is one: the first revision of every plant is inserted without looking,
 * `ON CONFLICT DO NOTHING`. The primary key decides among instances: a row that comes back is ours; for one that does
 * not, the latest revision is looked up, and the plant is unchanged, refused, or goes into the next round with the
 * revision after it. A round holds an id once, so plants of one batch with the same id keep their order, and a
 * revision is only written after the one before it was seen: no gaps. Each statement is a transaction of its own.
 *
 * When a statement fails, `run` may be called again with another connection. What was sent before is then looked for
 * first, under the number it was sent with, since another instance may have added revisions behind it. If it is there
 * it was stored by us (or by one who sent the same content with the same token in the same millisecond: then both say
 * that they made it, which harms no plant). If another's is there, ours never will be, and the next number is tried. If
 * none is there the statement may still be on its way through a server, so the same number is sent again: the primary
 * key makes one of the two do nothing, and where it is the second, what took its place is looked at in the same way.
 *
 * A row that was looked up may be newer than the standby has it, and gone after a failover. So before a result that
 * rests on one is given, a commit of our own is waited for, which is confirmed after everything before it; and a
 * further call of `run` knows nothing of what an earlier one looked up. What the batch itself inserted it remembers: a
 * plant that came earlier in it with the same content would be taken for a later one that is looked for.
 */
export class BatchCommit {
  readonly #writes: readonly PlantWrite[];
  readonly #repeatedIdRule: RepeatedIdRule;
  /** The same through all attempts: it tells a revision of ours from another's. */
  readonly #recordedAt = Date.now();
  readonly #results: WriteResult[];
  /** The writes that have no result yet, by id, in their order. */
  readonly #open = new Map<bigint, number[]>();
  readonly #latest = new Map<bigint, Latest>();
  #sent: SentRevision[] = [];
  /** A statement that was given up may still come to its end, at any moment. */
  #mayBeStoredLate = false;
  /** Writes whose result rests on a row that was looked up, and that no commit of ours has confirmed. */
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
    for (const [id, { isOurs }] of this.#latest) if (!isOurs) this.#latest.delete(id);
    if (this.#sent.length > 0) {
      this.#mayBeStoredLate = true;
      await this.#settleSent(connection);
    }
    this.#reopenUnconfirmed();
    for (;;) {
      const rows = this.#nextRound();
      if (rows.length === 0) break;
      const inserted = await this.#insert(connection, rows);
      this.#sent = [];
      if (inserted.length > 0) this.#unconfirmed = [];
      const taken = this.#recordInserted(rows, inserted);
      if (taken.length === 0) continue;
      if (this.#mayBeStoredLate) {
        this.#sent = taken;
        await this.#settleSent(connection);
      } else {
        await this.#look(connection, taken);
      }
    }
    if (this.#unconfirmed.length > 0) await confirmEverythingBefore(connection);
    return this.#results;
  }

  /** Takes back the results that an earlier attempt could not give. */
  #reopenUnconfirmed(): void {
    for (const index of this.#unconfirmed.reverse()) {
      const { id } = this.#writes[index]!.plant;
      this.#open.set(id, [index, ...(this.#open.get(id) ?? [])]);
    }
    this.#unconfirmed = [];
  }

  /** Gives a result to each write that needs no revision, and a revision to the first of each id that does. */
  #nextRound(): SentRevision[] {
    const rows: SentRevision[] = [];
    for (const [id, indexes] of this.#open) {
      const row = this.#nextRevision(id, indexes);
      if (row === undefined) this.#open.delete(id);
      else rows.push(row);
    }
    // In one order everywhere: two instances that insert the same ids wait for each other, and never in a circle.
    return rows.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  #nextRevision(id: bigint, indexes: number[]): SentRevision | undefined {
    const latest = this.#latest.get(id);
    for (let index = indexes[0]; index !== undefined; index = indexes[0]) {
      const { plant, recordedBy } = this.#writes[index]!;
      const { name, tag = null } = plant;
      if (latest !== undefined && latest.name === name && latest.tag === tag) {
        this.#results[index] = { outcome: 'unchanged', revision: latest.revision };
      } else if (latest !== undefined && this.#repeatedIdRule === 'reject') {
        this.#results[index] = { refused: 'idTaken' };
      } else {
        const revision = (latest?.revision ?? 0) + 1;
        return { index, id, revision, name, tag, recordedAt: this.#recordedAt, recordedBy };
      }
      this.#unconfirmed.push(index);
      indexes.shift();
    }
    return undefined;
  }

  async #insert(connection: Connection, rows: SentRevision[]): Promise<TextRow[]> {
    this.#sent = rows;
    try {
      return await connection.commit(revisionInsert(rows));
    } catch (error) {
      // Nothing was done, says the server: what stands under these numbers is another's, however alike it is.
      if (kindOf(error) !== 'connectionLost' && !this.#mayBeStoredLate) this.#sent = [];
      throw error;
    }
  }

  /** @returns those that were not inserted */
  #recordInserted(rows: SentRevision[], inserted: TextRow[]): SentRevision[] {
    if (inserted.length === rows.length) {
      for (const row of rows) this.#stored(row);
      return [];
    }
    const insertedIds = new Set(inserted.map(([id]) => BigInt(id!)));
    const taken: SentRevision[] = [];
    for (const row of rows) {
      if (insertedIds.has(row.id)) this.#stored(row);
      else taken.push(row);
    }
    return taken;
  }

  #stored({ index, id, revision, name, tag }: SentRevision): void {
    this.#results[index] = { outcome: revision === 1 ? 'created' : 'revised', revision };
    this.#latest.set(id, { revision, name, tag, isOurs: true });
    this.#open.get(id)!.shift();
  }

  async #look(connection: Connection, taken: SentRevision[]): Promise<void> {
    const rows = await latestRevisions(
      connection,
      taken.map(({ id }) => id),
    );
    if (rows.length < taken.length) throw new InsertDoesNothing();
    for (const row of rows) this.#setLatest(row);
  }

  #setLatest([id, revision, name, tag]: TextRow): void {
    this.#latest.set(BigInt(id!), { revision: Number(revision), name: name!, tag: tag!, isOurs: false });
  }

  /**
   * Finds out which of the revisions that were sent are stored, and what is the latest of each id now. All of it from
   * one look: between two, one that is late could be stored and be taken for another's.
   */
  async #settleSent(connection: Connection): Promise<void> {
    // With the one before each: should that have been lost in a failover, the number would leave a gap.
    const rows = await neighbourhoods(connection, this.#sent);
    await confirmEverythingBefore(connection);
    const stored = new Set(rows.map(row => JSON.stringify(row)));
    const storedIds = new Set<bigint>();
    for (const sent of this.#sent) {
      this.#latest.delete(sent.id);
      if (!stored.has(JSON.stringify(rowOf(sent)))) continue;
      this.#stored(sent);
      storedIds.add(sent.id);
    }
    for (const row of rows) this.#setLatest(row);
    this.#sent = [];
    // What rests on the revision before one that is stored, is stored.
    this.#unconfirmed = this.#unconfirmed.filter(index => !storedIds.has(this.#writes[index]!.plant.id));
  }
}

/**
 * Returns once every commit that could be seen before is as durable as this server makes commits.
 *
 * Only a synchronous standby makes a difference: PostgreSQL shows a commit to others after the flush to its own disk,
 * and after the standby has it, unless the wait was cut short or the server crashed in it. A commit of our own that
 * waits for the standby waits for all before it; a message in the log of the server is the smallest there is
 * (https://www.postgresql.org/docs/current/functions-admin.html, `pg_logical_emit_message`).
 */
export async function confirmEverythingBefore(connection: Connection): Promise<void> {
  const [row] = await connection.run({
    text: `SELECT coalesce(current_setting('synchronous_standby_names', true), '')`,
  });
  if (row![0] === '') return;
  await connection.commit({ text: `SELECT pg_logical_emit_message(true, 'plant-store', '')` });
}
