import assert from 'node:assert/strict';
import type { NotConfirmed, RepeatedIdRule, WriteResult } from '../../src/core/commit/plant-commits.ts';
import { isSameContent, type NewPlant } from '../../src/core/contract/plant.ts';

/** A plant that a client has sent, and what it got. */
interface Call {
  plant: NewPlant;
  /** The plants of one sender have an order, also if it does not wait for results. */
  sender: number;
  /** All calls and results have an order. */
  calledAt: number;
  settledAt: number;
  /** Among the steps of the simulation. Several calls may be in one step. */
  calledInStep: number;
  settledInStep: number;
  result: WriteResult | NotConfirmed | undefined;
}

type Confirmed = Call & { result: Extract<WriteResult, { revision: number }> };

/** A revision of an id that is stored in the end. */
interface FinalRevision {
  plant: NewPlant;
  revision: number;
  /** The step in which it could be seen first. */
  visibleAt: number;
}

/**
 * What the clients of one store know. Each id is a register, whose revisions count its writes. So
 * the order of the calls is known, and the check that it fits to real time is short.
 */
export class Histories {
  readonly #rule: RepeatedIdRule;
  readonly #callsOf = new Map<bigint, Call[]>();
  #order = 0;
  /** Calls without a result. */
  readonly open = new Set<Call>();

  constructor(rule: RepeatedIdRule) {
    this.#rule = rule;
  }

  get ids(): Iterable<bigint> {
    return this.#callsOf.keys();
  }

  call(plant: NewPlant, sender: number, step: number): Call {
    const never = Number.POSITIVE_INFINITY;
    const order = { calledAt: ++this.#order, settledAt: never, calledInStep: step, settledInStep: never };
    const call: Call = { plant, sender, ...order, result: undefined };
    this.#callsOf.getOrInsertComputed(plant.id, () => []).push(call);
    this.open.add(call);
    return call;
  }

  /** Checks the result against all earlier ones of the id. */
  settle(call: Call, result: WriteResult | NotConfirmed, step: number): void {
    const calls = this.#callsOf.get(call.plant.id)!;
    const before = calls.filter(isConfirmed);
    call.result = result;
    call.settledAt = ++this.#order;
    call.settledInStep = step;
    this.open.delete(call);
    const isIdTaken = result.rejected === 'idTaken';
    assert.ok(!isIdTaken || this.#rule === 'reject', 'an id is taken, although plants are revised');
    if (!isConfirmed(call)) return;
    const { revision } = call.result;
    if (isWrite(call)) assert.equal(call.result.outcome, revision === 1 ? 'created' : 'revised');
    assert.ok(revision === 1 || this.#rule === 'revise', 'a plant is revised under the rule reject');
    for (const other of before) {
      const fault = faultOf(other, call);
      if (fault === undefined) continue;
      assert.fail(
        `${fault}: revision ${revision} of ${shown(call.plant)}, after revision ${other.result.revision} of ${shown(other.plant)}`,
      );
    }
  }

  /** Checks an id against what is stored in the end. */
  checkStored(id: bigint, stored: readonly FinalRevision[]): void {
    const calls = this.#callsOf.get(id) ?? [];
    for (const [index, { revision }] of stored.entries()) {
      assert.equal(revision, index + 1, `the revisions of ${id} have a gap`);
    }
    for (const call of calls.filter(isConfirmed)) this.#checkConfirmed(call, stored);
    for (const call of calls) {
      if (call.result?.rejected !== 'idTaken') continue;
      assert.ok(stored.length > 0 && stored[0]!.visibleAt <= call.settledInStep, 'no plant has the taken id');
      assert.ok(!isSameContent(stored[0]!.plant, call.plant), `${shown(call.plant)} is rejected, but stored`);
    }
    this.#checkWriters(calls, stored);
  }

  #checkConfirmed(call: Confirmed, stored: readonly FinalRevision[]): void {
    const { revision } = call.result;
    const own = stored[revision - 1];
    const says = `revision ${revision} of ${shown(call.plant)}`;
    assert.ok(own !== undefined, `a confirmed plant is missing: ${says}`);
    assert.ok(isSameContent(own.plant, call.plant), `a confirmed plant is changed: ${says}`);
    assert.ok(own.visibleAt <= call.settledInStep, `confirmed before it is stored: ${says}`);
    if (isWrite(call)) assert.ok(own.visibleAt >= call.calledInStep, `stored before it is sent: ${says}`);
    const next = stored[revision];
    if (!isWrite(call) && next !== undefined) {
      assert.ok(next.visibleAt >= call.calledInStep, `unchanged, but not the latest when called: ${says}`);
    }
  }

  /** Each revision is that of one call: of a confirmed one, or of one with an unknown result. */
  #checkWriters(calls: readonly Call[], stored: readonly FinalRevision[]): void {
    const unknown = calls.filter(
      ({ result }) => result === undefined || result.rejected === 'storeUnavailable',
    );
    for (const { plant, revision, visibleAt } of stored) {
      if (calls.some(call => isConfirmed(call) && isWrite(call) && call.result.revision === revision))
        continue;
      const writer = unknown.findIndex(
        call => isSameContent(call.plant, plant) && call.calledInStep <= visibleAt,
      );
      assert.ok(
        writer !== -1,
        `nobody has sent revision ${revision} of ${shown(plant)}, or it is stored twice`,
      );
      unknown.splice(writer, 1);
    }
  }
}

function isConfirmed(call: Call): call is Confirmed {
  return call.result !== undefined && 'revision' in call.result;
}

function isWrite({ result }: Confirmed): boolean {
  return result.outcome !== 'unchanged';
}

/** @param other was settled first */
function faultOf(other: Confirmed, call: Confirmed): string | undefined {
  if (other.result.revision === call.result.revision) {
    if (!isSameContent(other.plant, call.plant)) return 'one number has two contents';
    if (isWrite(other) && isWrite(call)) return 'two plants get one number';
  }
  const isOrdered = other.sender === call.sender || other.settledAt < call.calledAt;
  const [earlier, later] = other.calledAt < call.calledAt ? [other, call] : [call, other];
  if (!isOrdered || isAfter(later, earlier)) return undefined;
  return 'a later call gets a lower revision';
}

/** A later call gets no lower revision. A write makes a new one. */
function isAfter(later: Confirmed, { result: { revision } }: Confirmed): boolean {
  return isWrite(later) ? later.result.revision > revision : later.result.revision >= revision;
}

function shown({ id, name, tag }: NewPlant): string {
  return JSON.stringify({ id: String(id), name, tag });
}
