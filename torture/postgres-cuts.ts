import { setTimeout as wait } from 'node:timers/promises';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { PLANT_INSERT, PostgresProxy } from '../test/harness/postgres-proxy.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { seededRandom } from '../test/harness/seeded-random.ts';
import { SharedLoad } from '../test/harness/shared-load.ts';
import { spread } from './figures.ts';
import type { Ordeal, OrdealOrder, OrdealResult } from './ordeal.ts';
import { figuresOf, RoundsTally, ServedInstances } from './postgres-instances.ts';
import { lateRecoveries } from './recovery.ts';

/** On one store; beyond that, most of the time would go into comparing what is stored. */
const CUTS_OF_A_ROUND = 40;
const KEPT_BETWEEN_CUTS = 20;
/** From a cut to the moment at which the statement reaches the server after all. */
const STRAY_MS_MAX = 1_500;
/** Shorter and longer than a statement may take. */
const SILENT_MS_MAX = 4_000;

/** Random times come from here. */
type Random = (below: number) => number;

/** What is done to the network between the instances and PostgreSQL. */
const CUTS: Record<string, (proxy: PostgresProxy, random: Random) => Promise<unknown>> = {
  'cut before the commit, which is made later all the same': async (proxy, random) => {
    const statement = await proxy.holdNext(PLANT_INSERT);
    statement.cut();
    await wait(random(STRAY_MS_MAX));
    await statement.deliver();
  },
  'cut during the commit': async proxy => {
    const statement = await proxy.holdNext(PLANT_INSERT);
    const delivered = statement.deliver();
    statement.cut();
    await delivered;
  },
  'cut after the commit': async proxy => {
    const statement = await proxy.holdNext(PLANT_INSERT);
    await statement.deliver();
    statement.cut();
  },
  'an answer that comes late': async (proxy, random) => {
    const statement = await proxy.holdNext(PLANT_INSERT);
    await statement.deliver();
    await wait(random(SILENT_MS_MAX));
    statement.answer();
  },
  'every connection cut': async (proxy, random) => {
    await wait(random(50));
    proxy.cutAll();
  },
  'a server that stalls': async (proxy, random) => {
    proxy.stall();
    await wait(random(SILENT_MS_MAX));
    proxy.passAgain();
  },
};

/** Connections that are cut at the moments that matter, and silence, by a proxy in front of PostgreSQL. */
export const postgresCuts: Ordeal = {
  name: 'postgres-cuts',
  summary:
    'connections to PostgreSQL cut before, during and after a commit, and a server that stalls, under load',
  finds: ['answer-before-commit'],
  run,
};

async function run({ seed, budgetMs, weakness, signal, tell }: OrdealOrder): Promise<OrdealResult> {
  const untilMs = performance.now() + budgetMs;
  const isOver = (): boolean => signal.aborted || performance.now() > untilMs;
  const tally = new RoundsTally();
  const backAfterMs: number[] = [];
  const counts: Record<string, number> = Object.fromEntries(Object.keys(CUTS).map(name => [name, 0]));
  for (let round = 1; !isOver(); round++) {
    const random = seededRandom(seed + round);
    const log: LoggedRequest[] = [];
    await using server = await PostgresServer.start();
    await using proxy = await PostgresProxy.start(server.port);
    const database = await server.createDatabase();
    await using instances = await ServedInstances.start(proxy.url(database), weakness);
    await using load = await SharedLoad.start(instances.urls, database, log, seed + round);
    for (let cuts = 0; cuts < CUTS_OF_A_ROUND && !isOver(); cuts++) {
      await load.keeps(KEPT_BETWEEN_CUTS);
      const names = Object.keys(CUTS);
      const name = names[random(names.length)]!;
      await CUTS[name]!(proxy, random);
      counts[name]!++;
      const overAt = performance.now();
      await load.keeps(1);
      backAfterMs.push(performance.now() - overAt);
    }
    await load.keeps(KEPT_BETWEEN_CUTS);
    await load.stop();
    tally.add(`round ${round}`, await figuresOf(database, log));
    tell(`${backAfterMs.length} cuts, ${tally.faults.length} faults`);
  }
  return {
    faults: [...tally.faults, ...lateRecoveries(...backAfterMs)],
    figures: { ...counts, ...tally.figures, 'first 200 after it was over': spread(backAfterMs, 'ms') },
  };
}
