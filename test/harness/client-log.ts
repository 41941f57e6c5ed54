import { type NewPlant, newPlantJson, plantJson } from '../../src/contract/plant.ts';
import type { PlantRevision } from '../../src/store/plant-store.ts';

/** A plant that was sent, and what became of it as far as its client was told. */
export interface LoggedRequest {
  /** What the store holds if this request was stored, even where it must not be. */
  plant: NewPlant;
  /** When the first byte was sent and when the answer was there, on the clock that is never set. */
  sentAt: number;
  respondedAt: number;
  /** Undefined when the connection broke before there was one. */
  response: LoggedResponse | undefined;
}

export interface LoggedResponse {
  status: number;
  /** The text of the body. */
  body: string;
  /** The headers Plant-Id, Plant-Revision (0 when absent) and Plant-Outcome. */
  id: string | undefined;
  revision: number;
  outcome: string | undefined;
  retryAfter: string | undefined;
}

/**
 * Compares what clients were told with what is stored, by these definitions:
 *
 * - *lost*: answered 200, and the revision that the answer names is missing or is something else;
 * - *ghost*: stored, though it was answered 4xx;
 * - *stranger*: stored, though nobody sent it;
 * - *unknown*: answered 5xx or not at all. Either is right, so it is no fault by itself.
 *
 * @param log every request that was sent to the store, by all clients
 * @param stored all revisions, as a reader of the store gives them
 * @returns every fault, a line each; none when each promise was kept
 */
export function faultsOf(log: readonly LoggedRequest[], stored: Iterable<PlantRevision>): string[] {
  const revisions = Map.groupBy(stored, ({ plant }) => plant.id);
  /** Which revisions an answer of 200 says it has made. */
  const claimed = new Set<string>();
  const faults: string[] = [];

  for (const { plant, response } of log) {
    if (response?.status !== 200) continue;
    const { outcome, revision } = response;
    const said = `${outcome} ${contentOf(plant)} as revision ${revision}`;
    if (response.id !== String(plant.id) || response.body !== plantJson(plant)) {
      faults.push(`answer of another plant: ${said}, but the answer is of ${response.id} ${response.body}`);
    }
    const found = revisions.get(plant.id)?.find(each => each.revision === revision);
    if (found === undefined) faults.push(`lost: ${said}, which is missing`);
    else if (contentOf(found.plant) !== contentOf(plant))
      faults.push(`lost: ${said}, which is ${contentOf(found.plant)}`);

    if (outcome === 'unchanged') continue;
    if ((revision === 1) !== (outcome === 'created')) faults.push(`wrong outcome: ${said}`);
    const claim = `${plant.id} ${revision}`;
    if (claimed.has(claim)) faults.push(`made twice: ${said}`);
    claimed.add(claim);
  }

  const contentsOf = (
    isMeant: (response: LoggedResponse | undefined) => boolean,
  ): Map<string, LoggedRequest[]> =>
    Map.groupBy(
      log.filter(({ response }) => isMeant(response)),
      ({ plant }) => contentOf(plant),
    );
  const unknown = contentsOf(response => response === undefined || response.status >= 500);
  const rejected = contentsOf(
    response => response !== undefined && response.status >= 400 && response.status < 500,
  );
  for (const history of revisions.values()) {
    for (const [index, { plant, revision }] of history.entries()) {
      const content = contentOf(plant);
      if (revision !== index + 1) faults.push(`gap: ${content} is revision ${revision} after ${index}`);
      const before = history[index - 1];
      if (before !== undefined && contentOf(before.plant) === content)
        faults.push(`stored again: revision ${revision} of ${content} changes nothing`);
      // A request whose outcome is unknown has made one revision at most.
      if (claimed.has(`${plant.id} ${revision}`) || unknown.get(content)?.pop() !== undefined) continue;
      faults.push(`${rejected.has(content) ? 'ghost' : 'stranger'}: revision ${revision} of ${content}`);
    }
  }
  return faults;
}

/** Id, name and tag, to the digit; an absent tag differs from an empty one. */
const contentOf = newPlantJson;
