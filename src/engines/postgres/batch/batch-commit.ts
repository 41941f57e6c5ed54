import { type Clock, SYSTEM_CLOCK } from '../../../core/clock.ts';
import { isIntact } from '../../../core/commit/checksum.ts';
import type { PlantWrite, RepeatedIdRule, WriteResult } from '../../../core/commit/plant-commits.ts';
import type { PlantRevision } from '../../../core/commit/plant-revision.ts';
import { StoreRejected } from '../../../core/commit/store-errors.ts';
import { decide, type LatestRevision, mayBeFirst } from '../../../core/commit/write-decision.ts';
import { revisionOf } from '../../tables/revision-rows.ts';
import { kindOf } from '../postgres-errors.ts';
import type { StoreConnection } from '../topology/topology.ts';
import {
  type BatchWrite,
  hasUnconfirmed,
  isOfNoPlant,
  isPartlySettled,
  OPEN,
  resultOf,
  type SameId,
  type Sent,
  settleStored,
  settleUnconfirmed,
  UNKNOWN,
  unknownId,
} from './batch-writes.ts';
import type { CopyChoice } from './copy-choice.ts';
import { latestRevisions, revisionsAround, rowOf } from './revision-statements.ts';
import { storeRevisions } from './store-revisions.ts';

const NONE: LatestRevision = { kind: 'none' };

/** What the open writes of a batch need next. */
interface Round {
  /** At most one of each id. */
  toSend: Sent[];
  /** The ids whose latest revision must be known before the next decision. */
  toLookUp: bigint[];
}

/**
 * Writes one batch of plants into PostgreSQL, while other instances may write the same ids.
 *
 * The batch is written in rounds; most batches need one. A round has at most one revision of each
 * id, so plants with the same id keep their order and revision numbers have no gaps. Each COPY or
 * INSERT is a transaction ({@link storeRevisions}). {@link decide} has the rule for an open write, and
 * the primary key decides between instances:
 *
 * | write is    | event                                             | next status                 |
 * | ----------- | ------------------------------------------------- | --------------------------- |
 * | open        | it needs a latest revision that is unknown        | open, after a lookup        |
 * | open        | its latest revision is damaged                    | unconfirmed: `damaged`      |
 * | open        | its latest revision has the same content          | unconfirmed: unchanged      |
 * | open        | its condition names another latest revision       | unconfirmed: `plantChanged` |
 * | open        | its latest revision differs, the rule is `reject` | unconfirmed: `idTaken`      |
 * | open        | otherwise: COPY, or INSERT                        | sent with the next revision |
 * | sent        | COPY succeeds, or INSERT returns the row          | settled: created or revised |
 * | sent        | COPY finds that a key of the batch exists         | sent again by INSERT        |
 * | sent        | INSERT returns no row: look up the latest         | open                        |
 * | sent        | the server reports an error                       | open; if spansServers: sent |
 * | sent        | our own code fails                                | sent                        |
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
 * A failover may lose a looked-up revision, because the standby may lack it. So
 *
 * 1. before `run` returns a result that depends on it, it waits for a new commit, which confirms all
 *    earlier ones;
 * 2. a further call of `run` looks the latest revisions up again, because its server may have others;
 * 3. it does so before it writes a plant of an id that has a settled one. For example, a batch has the
 *    same plant twice, and the first one is settled as revision 1. Without the lookup, the second one
 *    would be sent as revision 1, too. The row of the first one would be taken for it, and its result
 *    would be `created` instead of `unchanged`.
 */
export class BatchCommit {
  readonly #writes: readonly BatchWrite[];
  readonly #ids = new Map<bigint, SameId>();
  readonly #repeatedIdRule: RepeatedIdRule;
  readonly #copyChoice: CopyChoice;
  /**
   * The time is the same for all attempts. It distinguishes our revision from one of another
   * instance. If two instances store the same content for one token in the same millisecond, both
   * may report `created`.
   */
  readonly #recordedAt: number;
  #hasRun = false;
  /** Only the first statement that writes may be a COPY: repeated ids are likely to conflict again. */
  #hasSent = false;
  /** Whether the server may still execute a statement of this batch that timed out. */
  #mayBeStoredLate = false;

  constructor(
    writes: readonly PlantWrite[],
    repeatedIdRule: RepeatedIdRule,
    copyChoice: CopyChoice,
    clock: Clock = SYSTEM_CLOCK,
  ) {
    this.#writes = writes.map(({ plant, contentChecksum, recordedBy, ifRevision }) => {
      const sameId = this.#ids.getOrInsertComputed(plant.id, unknownId);
      const write: BatchWrite = { plant, contentChecksum, recordedBy, ifRevision, sameId, status: OPEN };
      sameId.writes.push(write);
      return write;
    });
    this.#repeatedIdRule = repeatedIdRule;
    this.#copyChoice = copyChoice;
    this.#recordedAt = clock.wallNow();
  }

  /** @returns one result for each write, in their order; all are durable */
  async run(connection: StoreConnection): Promise<WriteResult[]> {
    if (this.#hasRun) await this.#lookUpAgain(connection);
    this.#hasRun = true;
    for (;;) {
      const { toSend, toLookUp } = this.#nextRound();
      if (toSend.length > 0) await this.#send(connection, toSend);
      if (toLookUp.length > 0) await this.#lookUpLatest(connection, toLookUp);
      if (toSend.length === 0 && toLookUp.length === 0) break;
    }
    const unconfirmed = this.#writes.filter(({ status }) => status.kind === 'unconfirmed');
    if (unconfirmed.length > 0)
      await connection.topology.confirmLatest(connection, unconfirmed, unconfirmed.filter(isOfNoPlant));
    settleUnconfirmed(unconfirmed);
    return this.#writes.map(resultOf);
  }

  /** Replaces what an earlier call of `run` has learned from another server or connection. */
  async #lookUpAgain(connection: StoreConnection): Promise<void> {
    for (const sameId of this.#ids.values()) sameId.latest = UNKNOWN;
    const sentBefore = this.#writes.map(({ status }) => status).filter(status => status.kind === 'sent');
    // A second lookup of the id of a sent revision could find it, or a later one, stored meanwhile.
    const sentIds = new Set(sentBefore.map(({ revision }) => revision.plant.id));
    const others = [...this.#ids].filter(([id, sameId]) => !sentIds.has(id) && isPartlySettled(sameId));
    // If this lookup fails, the sent revisions are still `sent` for the next call.
    if (others.length > 0) {
      const ids = others.map(([id]) => id);
      await this.#lookUpLatest(connection, ids);
    }
    if (sentBefore.length > 0) {
      this.#mayBeStoredLate = true;
      await this.#lookUpSent(connection, sentBefore);
    }
    // The earlier call could not confirm these results.
    for (const write of this.#writes) if (write.status.kind === 'unconfirmed') write.status = OPEN;
  }

  /** Gives results to writes that need no revision. */
  #nextRound(): Round {
    const round: Round = { toSend: [], toLookUp: [] };
    for (const [id, sameId] of this.#ids) {
      const next = this.#nextOf(sameId);
      if (next?.kind === 'sent') round.toSend.push(next);
      else if (next?.kind === 'unknown') round.toLookUp.push(id);
    }
    // All instances insert in the same order, so they never deadlock.
    round.toSend.sort((a, b) => (a.write.plant.id < b.write.plant.id ? -1 : 1));
    return round;
  }

  /** @returns `unknown` if the next write needs the latest revision; undefined if no write is open */
  #nextOf({ writes, latest }: SameId): Sent | { kind: 'unknown' } | undefined {
    for (const write of writes) {
      if (write.status.kind !== 'open') continue;
      if (latest.kind === 'unknown' && !mayBeFirst(write)) return latest;
      // The insert of a first revision shows whether there is a plant.
      const known = latest.kind === 'unknown' ? NONE : latest;
      const decision = decide(write, known, this.#repeatedIdRule, this.#recordedAt);
      if (decision.kind === 'insert') {
        const base = known.kind === 'stored' ? known.stored : undefined;
        const sent: Sent = { kind: 'sent', write, revision: decision.revision, base };
        write.status = sent;
        return sent;
      }
      write.status = { kind: 'unconfirmed', result: decision.result };
    }
    return undefined;
  }

  /** Stores these revisions. Of those that conflict with others, it looks up the latest ones. */
  async #send(connection: StoreConnection, toSend: Sent[]): Promise<void> {
    const conflicting = await this.#store(connection, toSend);
    if (conflicting.length === 0) return;
    if (this.#mayBeStoredLate) return await this.#lookUpSent(connection, conflicting);
    for (const { write } of conflicting) write.status = OPEN;
    const ids = conflicting.map(({ write }) => write.plant.id);
    if ((await this.#lookUpLatest(connection, ids)) < ids.length) {
      // A row that is neither inserted nor found would be retried without end.
      throw new StoreRejected('PostgreSQL accepts a plant but does not store it', {
        advice: '`npx plant-store verify` names what was changed',
      });
    }
  }

  /** @returns the revisions that the server has not stored; their writes are still `sent` */
  async #store(connection: StoreConnection, round: Sent[]): Promise<Sent[]> {
    const { spansServers } = connection.topology;
    const revisions = round.map(({ revision }) => revision);
    let storedIds: ReadonlySet<bigint>;
    try {
      const copyChoice = this.#hasSent ? undefined : this.#copyChoice;
      this.#hasSent = true;
      storedIds = await storeRevisions(connection, revisions, copyChoice);
    } catch (error) {
      // After an error of the server nothing is stored, so a stored revision with such a number
      // is not ours. But another server may have committed ours, and after an error of our own code
      // the server may have.
      const isUnknown = spansServers || ['connectionLost', 'internal'].includes(kindOf(error));
      if (!isUnknown && !this.#mayBeStoredLate) for (const { write } of round) write.status = OPEN;
      throw error;
    }
    // A commit confirms all earlier commits of its server. If several servers may have committed,
    // `settleStored` settles only writes of the same id.
    if (storedIds.size > 0 && !spansServers) settleUnconfirmed(this.#writes);
    const conflicting: Sent[] = [];
    for (const sent of round) {
      if (storedIds.has(sent.write.plant.id)) settleStored(sent);
      else conflicting.push(sent);
    }
    return conflicting;
  }

  /** Looks up the latest revision of each of these ids. @returns how many there are */
  async #lookUpLatest(connection: StoreConnection, ids: readonly bigint[]): Promise<number> {
    const found = await latestRevisions(connection, ids);
    for (const revision of found) this.#found(revision);
    const foundIds = new Set(found.map(({ plant }) => plant.id));
    const missing = ids.filter(id => !foundIds.has(id));
    // A row with a damaged id is found by the id in the index, but contains another id. Nothing says
    // which of the missing ids it has, so all of them count as damaged.
    const isIdDamaged = found.length > ids.length - missing.length;
    const damaged = isIdDamaged ? found.find(revision => !isIntact(revision)) : undefined;
    for (const id of missing)
      this.#ids.get(id)!.latest = damaged === undefined ? NONE : { kind: 'stored', stored: damaged };
    return found.length;
  }

  #found(stored: PlantRevision): void {
    // If the id of a row is damaged, the batch may not have this id.
    const sameId = this.#ids.get(stored.plant.id);
    if (sameId !== undefined) sameId.latest = { kind: 'stored', stored };
  }

  /** Looks up which of these revisions are stored, and the latest revision of each id. */
  async #lookUpSent(connection: StoreConnection, sent: Sent[]): Promise<void> {
    const revisions = sent.map(({ revision }) => revision);
    // The rows include the latest revision of each id. If a failover has lost the revision before
    // ours, our number would leave a gap.
    const rows = await revisionsAround(connection, revisions);
    const ofNoPlant = sent.filter(({ write, base }) => base === undefined && hasUnconfirmed(write.sameId));
    await connection.topology.confirmLatest(
      connection,
      revisions,
      ofNoPlant.map(({ write }) => write),
    );
    const foundIds = new Set(rows.map(([id]) => BigInt(id!)));
    const storedRows = new Set(rows.map(row => JSON.stringify(row)));
    const isStored = (revision: PlantRevision): boolean => storedRows.has(JSON.stringify(rowOf(revision)));
    for (const each of sent) {
      const { write, revision, base } = each;
      write.sameId.latest = UNKNOWN;
      if (isStored(revision)) {
        settleStored(each);
        continue;
      }
      write.status = OPEN;
      // The commit above confirms the base, and the results that depend on it. These writes must
      // not be opened again: they could take the number of this revision, which may be stored late.
      const isBaseThere = base === undefined ? !foundIds.has(write.plant.id) : isStored(base);
      if (isBaseThere) settleUnconfirmed(write.sameId.writes);
    }
    // The latest revision of an id is the last one of its rows.
    for (const row of rows) this.#found(revisionOf(row));
  }
}
