import { type Clock, SYSTEM_CLOCK } from '../../core/clock.ts';
import { isIntact } from '../../core/commit/checksum.ts';
import type { PlantWrite, RepeatedIdRule, WriteResult } from '../../core/commit/plant-commits.ts';
import type { PlantRevision } from '../../core/commit/plant-revision.ts';
import { StoreRejected } from '../../core/commit/store-errors.ts';
import { decide, storedResult } from '../../core/commit/write-decision.ts';
import { revisionOf } from '../tables/revision-rows.ts';
import { confirmLatest } from './confirm-commits.ts';
import type { Connection, TextRow } from './connection.ts';
import { ConnectionLost, kindOf } from './postgres-errors.ts';
import { latestRevisions, revisionInsert, revisionsAround, rowOf } from './revision-statements.ts';

/** The status of one write. The table of {@link BatchCommit} has all its changes. */
type WriteStatus =
  | { kind: 'open' }
  | Sent
  /** The result depends on a looked-up revision. A failover may lose that until a commit. */
  | { kind: 'unconfirmed'; result: WriteResult }
  | { kind: 'settled'; result: WriteResult };

/** The server may have stored this revision, or may still store it. */
interface Sent {
  kind: 'sent';
  write: BatchWrite;
  revision: PlantRevision;
  /** The revision before it; undefined if it is the first. */
  base: PlantRevision | undefined;
}

interface BatchWrite extends Pick<PlantWrite, 'plant' | 'contentChecksum' | 'recordedBy'> {
  readonly sameId: SameId;
  status: WriteStatus;
}

/** The writes of one id. */
interface SameId {
  /** In the order of the batch, and of statuses: settled, unconfirmed, at most one sent, open. */
  readonly writes: BatchWrite[];
  /** The latest revision in the store, if this call of `run` has inserted it or looked it up. */
  latest: PlantRevision | undefined;
}

const OPEN: WriteStatus = { kind: 'open' };

/**
 * Writes one batch of plants into PostgreSQL, while other instances may write the same ids.
 *
 * The batch is written in rounds; most batches need one. A round has at most one revision of each
 * id, so plants with the same id keep their order and revision numbers have no gaps. Each statement
 * is a transaction. {@link decide} has the rule for an open write, and the primary key decides between
 * instances:
 *
 * | write is    | event                                             | next status                 |
 * | ----------- | ------------------------------------------------- | --------------------------- |
 * | open        | its latest revision is damaged                    | unconfirmed: `damaged`      |
 * | open        | its latest revision has the same content          | unconfirmed: unchanged      |
 * | open        | its latest revision differs, the rule is `reject` | unconfirmed: `idTaken`      |
 * | open        | otherwise: `INSERT ... ON CONFLICT DO NOTHING`    | sent with the next revision |
 * | sent        | the server returns the row                        | settled: created or revised |
 * | sent        | the server returns no row: look up the latest     | open                        |
 * | sent        | the server reports an error                       | open; on Citus: sent        |
 * | sent        | the connection is lost, or was lost before        | sent, see below             |
 * | unconfirmed | a later commit of its server is durable           | settled with this result    |
 * | unconfirmed | `run` is called again                             | open                        |
 *
 * After a failure `run` may be called again with another connection. It then looks up each sent
 * revision under the number with which it was sent, and may find there
 *
 * - our revision: this batch stored it;
 * - another revision: ours can no longer be stored there, so the next number is tried;
 * - no revision: our statement may still be executed late, so the same number is sent again. The
 *   primary key makes one of the two do nothing. If it is the second, the row is looked up.
 *
 * A failover may lose a looked-up revision, because the standby may lack it. Before `run` returns a
 * result that depends on it, it waits for a new commit, which confirms all earlier ones. A further
 * call of `run` looks the latest revisions up again, because its server may have others. It does so
 * before it writes another plant of an id that has a settled one: if the two plants were equal, the
 * stored revision of the settled one would be taken for that of the other.
 */
export class BatchCommit {
  readonly #writes: readonly BatchWrite[];
  readonly #ids = new Map<bigint, SameId>();
  readonly #repeatedIdRule: RepeatedIdRule;
  /**
   * The time is the same for all attempts. It distinguishes our revision from one of another
   * instance. If two instances store the same content for one token in the same millisecond, both
   * may report `created`.
   */
  readonly #recordedAt: number;
  #hasRun = false;
  /** Whether the server may still execute a statement of this batch that timed out. */
  #mayBeStoredLate = false;

  constructor(writes: readonly PlantWrite[], repeatedIdRule: RepeatedIdRule, clock: Clock = SYSTEM_CLOCK) {
    this.#writes = writes.map(({ plant, contentChecksum, recordedBy }) => {
      const sameId = this.#ids.getOrInsertComputed(plant.id, unknownId);
      const write: BatchWrite = { plant, contentChecksum, recordedBy, sameId, status: OPEN };
      sameId.writes.push(write);
      return write;
    });
    this.#repeatedIdRule = repeatedIdRule;
    this.#recordedAt = clock.wallNow();
  }

  /** @returns one result for each write, in their order; all are durable */
  async run(connection: Connection): Promise<WriteResult[]> {
    if (this.#hasRun) await this.#lookUpAgain(connection);
    this.#hasRun = true;
    for (let round = this.#nextRound(); round.length > 0; round = this.#nextRound()) {
      const conflicting = await this.#insert(connection, round);
      if (conflicting.length === 0) continue;
      if (this.#mayBeStoredLate) await this.#lookUpSent(connection, conflicting);
      else await this.#lookUpLatest(connection, conflicting);
    }
    const unconfirmed = this.#writes.filter(({ status }) => status.kind === 'unconfirmed');
    if (unconfirmed.length > 0) await confirmLatest(connection, unconfirmed);
    settleUnconfirmed(unconfirmed);
    return this.#writes.map(resultOf);
  }

  /** Replaces what an earlier call of `run` has learned from another server or connection. */
  async #lookUpAgain(connection: Connection): Promise<void> {
    for (const sameId of this.#ids.values()) sameId.latest = undefined;
    const sentBefore = this.#writes.map(({ status }) => status).filter(status => status.kind === 'sent');
    // A second lookup of the id of a sent revision could find it, or a later one, stored meanwhile.
    const sentIds = new Set(sentBefore.map(({ revision }) => revision.plant.id));
    const others = [...this.#ids].filter(([id, sameId]) => !sentIds.has(id) && isPartlySettled(sameId));
    // If this lookup fails, the sent revisions are still `sent` for the next call.
    if (others.length > 0) {
      const ids = others.map(([id]) => id);
      for (const revision of await latestRevisions(connection, ids)) this.#found(revision);
    }
    if (sentBefore.length > 0) {
      this.#mayBeStoredLate = true;
      await this.#lookUpSent(connection, sentBefore);
    }
    // The earlier call could not confirm these results.
    for (const write of this.#writes) if (write.status.kind === 'unconfirmed') write.status = OPEN;
  }

  /** Gives results to writes that need no revision. @returns the next revision of each other id */
  #nextRound(): Sent[] {
    const round: Sent[] = [];
    for (const sameId of this.#ids.values()) {
      const sent = this.#nextRevision(sameId);
      if (sent !== undefined) round.push(sent);
    }
    // All instances insert in the same order, so they never deadlock.
    return round.sort((a, b) => (a.write.plant.id < b.write.plant.id ? -1 : 1));
  }

  #nextRevision({ writes, latest }: SameId): Sent | undefined {
    for (const write of writes) {
      if (write.status.kind !== 'open') continue;
      const decision = decide(write, latest, this.#repeatedIdRule, this.#recordedAt);
      if (decision.kind === 'insert') {
        const sent: Sent = { kind: 'sent', write, revision: decision.revision, base: latest };
        write.status = sent;
        return sent;
      }
      write.status = { kind: 'unconfirmed', result: decision.result };
    }
    return undefined;
  }

  /** @returns the revisions that the server has not inserted; their writes are still `sent` */
  async #insert(connection: Connection, round: Sent[]): Promise<Sent[]> {
    const { isCitus } = connection;
    const revisions = round.map(({ revision }) => revision);
    let rows: TextRow[];
    try {
      rows = await connection.commit(revisionInsert(revisions, isCitus));
      // This commit is durable, but later ones would not be. Another connection looks this one up.
      if (rows.some(([, flush]) => flush === 'on'))
        throw new ConnectionLost(
          'synchronous_commit of the connection was lost; is there a pooler in between?',
        );
    } catch (error) {
      // After an error of the server nothing is inserted, so a stored revision with such a number
      // is not ours. But on Citus another server may have committed ours.
      const isUnknown = isCitus || ['connectionLost', 'internal'].includes(kindOf(error));
      if (!isUnknown && !this.#mayBeStoredLate) for (const { write } of round) write.status = OPEN;
      throw error;
    }
    // A commit confirms all earlier commits of its server. On Citus several servers may have
    // committed, so there `settleStored` settles only writes of the same id.
    if (rows.length > 0 && !isCitus) settleUnconfirmed(this.#writes);
    const insertedIds = new Set(rows.map(([id]) => BigInt(id!)));
    const conflicting: Sent[] = [];
    for (const sent of round) {
      if (insertedIds.has(sent.write.plant.id)) settleStored(sent);
      else conflicting.push(sent);
    }
    return conflicting;
  }

  /** Opens these writes again, and looks up the latest revision of each id for them. */
  async #lookUpLatest(connection: Connection, conflicting: Sent[]): Promise<void> {
    for (const { write } of conflicting) write.status = OPEN;
    const ids = conflicting.map(({ write }) => write.plant.id);
    const found = await latestRevisions(connection, ids);
    if (found.length < conflicting.length) {
      // A row that is neither inserted nor found would be retried without end.
      throw new StoreRejected('PostgreSQL accepts a plant but does not store it', {
        advice: '`npx plant-store verify` names what was changed',
      });
    }
    for (const revision of found) this.#found(revision);
    // A row with a damaged id is found by the id in the index, but contains another id.
    const damaged = found.find(revision => !isIntact(revision));
    if (damaged === undefined) return;
    const foundIds = new Set(found.map(({ plant }) => plant.id));
    for (const id of ids) if (!foundIds.has(id)) this.#ids.get(id)!.latest = damaged;
  }

  #found(latest: PlantRevision): void {
    // If the id of a row is damaged, the batch may not have this id.
    const sameId = this.#ids.get(latest.plant.id);
    if (sameId !== undefined) sameId.latest = latest;
  }

  /** Looks up which of these revisions are stored, and the latest revision of each id. */
  async #lookUpSent(connection: Connection, sent: Sent[]): Promise<void> {
    const revisions = sent.map(({ revision }) => revision);
    // The rows include the latest revision of each id. If a failover has lost the revision before
    // ours, our number would leave a gap.
    const rows = await revisionsAround(connection, revisions);
    await confirmLatest(connection, revisions);
    const storedRows = new Set(rows.map(row => JSON.stringify(row)));
    const isStored = (revision: PlantRevision): boolean => storedRows.has(JSON.stringify(rowOf(revision)));
    for (const each of sent) {
      const { write, revision, base } = each;
      write.sameId.latest = undefined;
      if (isStored(revision)) {
        settleStored(each);
        continue;
      }
      write.status = OPEN;
      // The commit above confirms the base, and the results that depend on it. These writes must
      // not be opened again: they could take the number of this revision, which may be stored late.
      if (base !== undefined && isStored(base)) settleUnconfirmed(write.sameId.writes);
    }
    // The latest revision of an id is the last one of its rows.
    for (const row of rows) this.#found(revisionOf(row));
  }
}

function unknownId(): SameId {
  return { writes: [], latest: undefined };
}

function isPartlySettled({ writes }: SameId): boolean {
  return writes[0]!.status.kind === 'settled' && writes.at(-1)!.status.kind !== 'settled';
}

/**
 * Settles a write whose revision is stored, and the earlier writes of its id. If an earlier write
 * were opened again, the earlier plant would get the later number.
 */
function settleStored({ write, revision: stored }: Sent): void {
  const { sameId } = write;
  settleUnconfirmed(sameId.writes);
  write.status = { kind: 'settled', result: storedResult(stored) };
  sameId.latest = stored;
}

/** Settles the writes that have a result. Called after a commit of their server. */
function settleUnconfirmed(writes: readonly BatchWrite[]): void {
  for (const write of writes) {
    const { status } = write;
    if (status.kind === 'unconfirmed') write.status = { kind: 'settled', result: status.result };
  }
}

function resultOf({ status }: BatchWrite): WriteResult {
  if (status.kind !== 'settled') throw new Error(`a write of the batch is ${status.kind}`);
  return status.result;
}
