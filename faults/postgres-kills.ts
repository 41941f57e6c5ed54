import { setTimeout as wait } from 'node:timers/promises';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import type { Scenario } from './scenario.ts';
import { type Round, runOnStores } from './served-store.ts';

const INSTANCES = 3;
/** The longest time between two kills, and the longest time until PostgreSQL starts again. */
const BETWEEN_MAX_MS = 300;

/** The kills, in order. A frozen PostgreSQL has many statements in flight. */
const KILLS = [
  'kills of PostgreSQL',
  'kills of an instance',
  'stops of PostgreSQL',
  'kills of an instance',
  'kills of a frozen PostgreSQL',
  'restarts of an instance',
] as const;

export const postgresKills: Scenario = {
  name: 'postgres-kills',
  summary: 'kill -9 of PostgreSQL and of three instances, and their restart, alternately, under load',
  needs: [],
  secondsMin: 10,
  finds: ['synchronous-off', 'respond-before-commit'],
  run: order =>
    runOnStores(order, {
      roundsPerStore: 12,
      async setUp(opened) {
        const server = opened.use(await PostgresServer.start());
        return { store: { database: await server.createDatabase() }, place: server };
      },
      round: kill,
    }),
};

async function kill({ store, place: server, random, number }: Round<PostgresServer>): Promise<string> {
  const how = KILLS[number % KILLS.length]!;
  await wait(random(BETWEEN_MAX_MS));
  if (how === 'kills of an instance') {
    await store.replace(random(INSTANCES), 'SIGKILL');
    return how;
  }
  if (how === 'restarts of an instance') {
    // As for an update. No request may fail.
    const beganAt = performance.now();
    const exitCode = await store.replace(random(INSTANCES), 'SIGTERM');
    if (exitCode !== 0) store.faults.push(`an instance ended with ${exitCode}`);
    for (const { sentAt, response } of store.log)
      if (sentAt > beganAt && response !== undefined && response.status >= 500)
        store.faults.push(`a response during a restart was ${response.status}`);
    return how;
  }
  if (how === 'kills of a frozen PostgreSQL') {
    await server.signal('SIGSTOP');
    await wait(random(BETWEEN_MAX_MS));
  }
  await (how === 'stops of PostgreSQL' ? server.stop() : server.kill());
  await wait(random(BETWEEN_MAX_MS));
  await server.startAgain();
  await store.recovered();
  return how;
}
