import { setTimeout as wait } from 'node:timers/promises';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { spread } from './figures.ts';
import type { Ordeal, OrdealOrder, OrdealResult } from './ordeal.ts';
import { lateRecoveries, lateRestarts } from './recovery.ts';
import { ServedStore } from './served-store.ts';

/** Beyond these rounds on one store, most of the time would go into comparing what is stored. */
const ROUNDS_PER_STORE = 10;
const LOAD_MS_MAX = 300;

/** `kill -9` again and again, and before it now and then the death of the threads that write. */
export const kills: Ordeal = {
  name: 'kills',
  summary: 'kill -9 of the service and the death of its threads, under load, on SQLite',
  finds: ['answer-before-commit'],
  run,
};

async function run(order: OrdealOrder): Promise<OrdealResult> {
  const { seed, signal, tell } = order;
  const untilMs = performance.now() + order.budgetMs;
  const random = seededRandom(seed);
  const faults: string[] = [];
  const restartMs: number[] = [];
  const recoveryMs: number[] = [];
  const counts = { kills: 0, requests: 0, created: 0, unknown: 0 };
  while (performance.now() < untilMs && !signal.aborted) {
    await using store = await ServedStore.make({
      weakness: order.weakness,
      modules: ['./dying-threads.ts'],
    });
    for (let round = 0; round < ROUNDS_PER_STORE && performance.now() < untilMs; round++) {
      await store.startUnderLoad(seed + counts.kills);
      for (let deaths = random(3); deaths > 0; deaths--) {
        store.serve.child.kill('SIGUSR2');
        recoveryMs.push(await store.keeps(1));
        await wait(random(50));
      }
      await wait(random(LOAD_MS_MAX));
      await store.kill();
      counts.kills++;
      faults.push(...(await store.faults(`kill ${counts.kills}`)));
      if (signal.aborted) break;
    }
    counts.requests += store.log.length;
    counts.created += store.kept.filter(({ answer }) => answer?.outcome === 'created').length;
    counts.unknown += store.unknown.length;
    restartMs.push(...store.firstKeptAfterMs);
    tell(`${counts.kills} kills, ${counts.requests} requests, ${faults.length} faults`);
  }
  faults.push(...lateRestarts(...restartMs), ...lateRecoveries(...recoveryMs));
  return {
    faults,
    figures: {
      ...counts,
      'deaths of threads': recoveryMs.length,
      'start to first 200': spread(restartMs, 'ms'),
      'death of threads to next 200': spread(recoveryMs, 'ms'),
    },
  };
}
