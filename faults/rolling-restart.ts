import { setTimeout as wait } from 'node:timers/promises';
import { newPlantJson } from '../src/contract/plant.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { storedRevisions } from '../test/harness/stored-revisions.ts';
import type { Scenario } from './scenario.ts';
import { runOnStores, type ServedStore } from './served-store.ts';

const INSTANCES = 2;
const BETWEEN_RESTARTS_MS = 1_000;

/** Instances are restarted in turn, as for a new version, while clients are sent to the other one: no request fails. */
export const rollingRestart: Scenario = {
  name: 'rolling-restart',
  summary: `${INSTANCES} instances over one PostgreSQL, restarted in turn under load`,
  needs: [],
  secondsMin: 10,
  finds: [],
  run: order =>
    runOnStores(order, {
      roundsPerStore: 20,
      async setUp(opened) {
        const server = opened.use(await PostgresServer.start());
        const database = await server.createDatabase();
        return { store: { database, instances: new Array(INSTANCES).fill({}) }, place: database };
      },
      async round({ store, number }) {
        const exitCode = await store.replace(number % INSTANCES, 'SIGTERM');
        if (exitCode !== 0) store.faults.push(`an instance ended with ${exitCode}`);
        await wait(BETWEEN_RESTARTS_MS);
        return 'restarts';
      },
      assess: failedRequests,
    }),
};

/** Requests that were accepted and did not get their 200. */
async function failedRequests(store: ServedStore, database: string): Promise<string[]> {
  const confirmed = new Set<string>();
  for (const { plant, response } of store.log)
    if (response?.status === 200) confirmed.add(newPlantJson(plant));
  const stored = new Set((await storedRevisions(database)).map(({ plant }) => newPlantJson(plant)));
  return store.log.flatMap(({ plant, response }) => {
    const content = newPlantJson(plant);
    if (response !== undefined && response.status >= 500)
      return [`plant ${content} was answered ${response.status}`];
    // Whether a request without a response was accepted shows where it is the only one of its content.
    return response === undefined && stored.has(content) && !confirmed.has(content)
      ? [`plant ${content} was stored, and its connection closed before the response`]
      : [];
  });
}
