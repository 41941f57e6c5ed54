import { setTimeout as wait } from 'node:timers/promises';
import { newSqliteFile, type Scenario } from './scenario.ts';
import { runOnStores } from './served-store.ts';

const LOAD_MAX_MS = 300;

/** Kills the service with `kill -9` again and again, and sometimes its writing threads before. */
export const kills: Scenario = {
  name: 'kills',
  summary: 'kill -9 of the service and the death of its threads, under load, on SQLite',
  needs: [],
  secondsMin: 3,
  finds: ['respond-before-commit'],
  run: order =>
    runOnStores(order, {
      roundsPerStore: 10,
      async setUp(opened) {
        const database = `sqlite:${newSqliteFile(opened)}`;
        return { store: { database, modules: ['./dying-threads.ts'] }, place: undefined };
      },
      async round({ store, random }) {
        const deaths = random(3);
        for (let death = 0; death < deaths; death++) {
          store.instance().child.kill('SIGUSR2');
          await store.recovered();
          await wait(random(50));
        }
        await wait(random(LOAD_MAX_MS));
        await store.kill();
        await store.startUnderLoad();
        return `kills after ${deaths} deaths of threads`;
      },
    }),
};
