import assert from 'node:assert/strict';
import type { NotConfirmed, WriteResult } from '../../src/core/commit/plant-commits.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';
import {
  faultsOfId,
  type HistoryRequest,
  type HistoryRevision,
  type RequestResult,
  requestFaults,
} from '../harness/linearizable.ts';
import type { Scheduler } from './scheduler.ts';

/**
 * The plants that the clients of one store have sent. They are checked as in the fault scenarios: after
 * each step by the results alone, and at the end by what is stored, too.
 */
export class SentPlants {
  readonly #scheduler: Scheduler;
  /** By id: each is a register of its own. */
  readonly #requests = new Map<bigint, HistoryRequest[]>();
  /** The ids that have results which were not checked. */
  readonly #settled = new Set<bigint>();
  /** How many have no result. */
  open = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** @param sender its plants have an order, also if it does not wait for results */
  send(plant: NewPlant, sender: number, recordedBy: number, ifRevision?: number): HistoryRequest {
    const request: HistoryRequest = {
      plant,
      ifRevision,
      sentAt: this.#scheduler.timestamp(),
      respondedAt: Number.POSITIVE_INFINITY,
      result: { kind: 'unknown', reason: 'no result' },
      sender,
      recordedBy,
    };
    this.#requests.getOrInsertComputed(plant.id, () => []).push(request);
    this.open++;
    return request;
  }

  settle(request: HistoryRequest, result: WriteResult | NotConfirmed): void {
    request.respondedAt = this.#scheduler.timestamp();
    request.result = resultOf(result);
    this.open--;
    this.#settled.add(request.plant.id);
  }

  /** Checks the results so far. It must be called after each step. */
  checkResults(): void {
    for (const id of this.#settled) noFaults(faultsOfId(id, this.#requests.get(id)!));
    this.#settled.clear();
  }

  /** @param stored all revisions at the end, those of an id in order */
  check(stored: readonly HistoryRevision[]): void {
    noFaults(requestFaults([...this.#requests.values()].flat(), stored));
  }
}

function noFaults(faults: readonly string[]): void {
  assert.equal(faults.length, 0, faults.join('\n'));
}

/** Only a failed commit leaves it open whether a plant is stored. */
function resultOf(result: WriteResult | NotConfirmed): RequestResult {
  if (result.kind === 'confirmed') return result;
  const { error: reason } = result;
  if (reason === 'storeUnavailable') return { kind: 'unknown', reason };
  if (reason === 'plantChanged') return { kind: reason, revision: result.revision, reason };
  return { kind: reason === 'idTaken' ? reason : 'rejected', reason };
}
