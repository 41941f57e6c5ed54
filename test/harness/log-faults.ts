import type { PlantRevision } from '../../src/core/commit/plant-revision.ts';
import { newPlantJson, plantJson } from '../../src/core/contract/plant.ts';
import type { LoggedRequest } from './client-log.ts';
import { historyFaults } from './linearizable.ts';

/**
 * Compares the responses that clients received with the stored revisions:
 *
 * - *lost*: the response was 200, and the revision that it names is missing or different;
 * - *gap*, *stored again*: a number is missing, or a revision changes nothing;
 * - *ghost*: stored, although the response was 4xx;
 * - *stranger*: stored, although no client sent it;
 * - the responses are not linearizable; see {@link historyFaults}.
 *
 * After a 5xx or no response the plant is *unknown*: it may be stored or not; neither is a fault.
 *
 * @param log all requests of all clients to the store
 * @param stored all revisions, as a reader of the store returns them
 * @returns one line for each fault
 */
export function faultsOf(log: readonly LoggedRequest[], stored: readonly PlantRevision[]): string[] {
  const keyOf = (id: bigint, revision: number): string => `${id} ${revision}`;
  const byKey = new Map(stored.map(each => [keyOf(each.plant.id, each.revision), each]));
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
    const found = byKey.get(keyOf(plant.id, revision));
    if (found === undefined) faults.push(`lost: ${claimText}, which is missing`);
    else if (contentOf(found.plant) !== contentOf(plant))
      faults.push(`lost: ${claimText}, which is ${contentOf(found.plant)}`);
  }

  for (const history of Map.groupBy(stored, ({ plant }) => plant.id).values()) {
    for (const [index, { plant, revision }] of history.entries()) {
      const content = contentOf(plant);
      if (revision !== index + 1) faults.push(`gap: ${content} is revision ${revision} after ${index}`);
      const before = history[index - 1];
      if (before !== undefined && contentOf(before.plant) === content)
        faults.push(`stored again: revision ${revision} of ${content} changes nothing`);
    }
  }
  return [...faults, ...historyFaults(log, stored)];
}

/** Id, name and tag. Ids are exact, and an absent tag differs from an empty one. */
const contentOf = newPlantJson;
