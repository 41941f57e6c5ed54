import { type NewPlant, newPlantJson, plantJson } from '../../src/contract/plant.ts';
import type { PlantRevision } from '../../src/store/plant-store.ts';

/** A plant that was sent, with the response that its client received. */
export interface LoggedRequest {
  /** The content that the store has if it stored this request, also where it must not. */
  plant: NewPlant;
  /** When the first byte was sent and when the response was complete, on the monotonic clock. */
  sentAt: number;
  respondedAt: number;
  /** Undefined if the connection broke before the response. */
  response: LoggedResponse | undefined;
}

export interface LoggedResponse {
  status: number;
  body: string;
  /** The headers Plant-Id, Plant-Revision (0 when absent) and Plant-Outcome. */
  id: string | undefined;
  revision: number;
  outcome: string | undefined;
  retryAfter: string | undefined;
}

/**
 * Compares the responses that clients received with the stored revisions:
 *
 * - *lost*: the response was 200, and the revision that it names is missing or different;
 * - *ghost*: stored, although the response was 4xx;
 * - *stranger*: stored, although no client sent it;
 * - *unknown*: the response was 5xx or missing. The plant may be stored or not; neither is a fault.
 *
 * @param log all requests of all clients to the store
 * @param stored all revisions, as a reader of the store returns them
 * @returns one line for each fault
 */
export function faultsOf(log: readonly LoggedRequest[], stored: Iterable<PlantRevision>): string[] {
  const revisions = Map.groupBy(stored, ({ plant }) => plant.id);
  /** The revisions that responses with 200 have claimed to create. */
  const claimed = new Set<string>();
  const faults: string[] = [];

  for (const { plant, response } of log) {
    if (response?.status !== 200) continue;
    const { outcome, revision } = response;
    const claimText = `${outcome} ${contentOf(plant)} as revision ${revision}`;
    if (response.id !== String(plant.id) || response.body !== plantJson(plant)) {
      faults.push(
        `response for another plant: ${claimText}, but the response is for ${response.id} ${response.body}`,
      );
    }
    const found = revisions.get(plant.id)?.find(each => each.revision === revision);
    if (found === undefined) faults.push(`lost: ${claimText}, which is missing`);
    else if (contentOf(found.plant) !== contentOf(plant))
      faults.push(`lost: ${claimText}, which is ${contentOf(found.plant)}`);

    if (outcome === 'unchanged') continue;
    if ((revision === 1) !== (outcome === 'created')) faults.push(`wrong outcome: ${claimText}`);
    const claim = `${plant.id} ${revision}`;
    if (claimed.has(claim)) faults.push(`made twice: ${claimText}`);
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
      // A request whose outcome is unknown created at most one revision.
      if (claimed.has(`${plant.id} ${revision}`) || unknown.get(content)?.pop() !== undefined) continue;
      faults.push(`${rejected.has(content) ? 'ghost' : 'stranger'}: revision ${revision} of ${content}`);
    }
  }
  return faults;
}

/** Id, name and tag. Ids are exact, and an absent tag differs from an empty one. */
const contentOf = newPlantJson;
