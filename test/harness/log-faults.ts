import { newPlantJson, plantJson } from '../../src/core/contract/plant.ts';
import type { LoggedRequest } from './client-log.ts';
import { type HistoryRevision, historyFaults } from './linearizable.ts';

/**
 * Compares the responses that clients received with the stored revisions: each 200 is for the plant
 * that was sent, and the results are linearizable; see {@link historyFaults}.
 *
 * After a 5xx or no response the plant is *unknown*: it may be stored or not; neither is a fault.
 *
 * @param log all requests of all clients to the store
 * @param stored all revisions, as a reader of the store returns them
 * @returns one line for each fault
 */
export function faultsOf(log: readonly LoggedRequest[], stored: readonly HistoryRevision[]): string[] {
  return [...wrongResponses(log), ...historyFaults(log, stored)];
}

function* wrongResponses(log: readonly LoggedRequest[]): Generator<string> {
  for (const { plant, response } of log) {
    if (response?.status !== 200) continue;
    const { id, body, outcome, revision } = response;
    if (id === String(plant.id) && body === plantJson(plant)) continue;
    const sentText = `${newPlantJson(plant)} (${outcome} as revision ${revision})`;
    yield `response for another plant: ${sentText}, but the response is for ${id} ${body}`;
  }
}
