import { setTimeout as wait } from 'node:timers/promises';
import { newPlantJson } from '../src/contract/plant.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { storedRevisions } from '../test/harness/stored-revisions.ts';
import type { Scenario } from './scenario.ts';
import { runOnStores, type ServedStore } from './served-store.ts';

const INSTANCES = 2;
const BETWEEN_RESTARTS_MS = 1_000;

/** Restarts the instances one after the other, as for an update. No request may fail. */
export const rollingRestart: Scenario = {
  name: 'rolling-restart',
  summary: `${INSTANCES} instances on one PostgreSQL, restarted one after the other under load`,
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

/** Accepted requests without a 200. */
async function failedRequests(store: ServedStore, database: string): Promise<string[]> {
  const confirmed = new Set<string>();
  for (const { plant, response } of store.log)
    if (response?.status === 200) confirmed.add(newPlantJson(plant));
  const stored = new Set((await storedRevisions(database)).map(({ plant }) => newPlantJson(plant)));
  return store.log.flatMap(({ plant, response }) => {
    const content = newPlantJson(plant);
    if (response !== undefined && response.status >= 500)
      return [`the response to plant ${content} was ${response.status}`];
    // If only this request had this content, the stored plant shows that it was accepted.
    return response === undefined && stored.has(content) && !confirmed.has(content)
      ? [`plant ${content} was stored, and its connection closed before the response`]
      : [];
  });
}
