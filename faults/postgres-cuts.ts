import { setTimeout as wait } from 'node:timers/promises';
import { PLANT_INSERT, PostgresProxy } from '../test/harness/postgres-proxy.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import type { Scenario } from './scenario.ts';
import { runOnStores } from './served-store.ts';

/** The longest time from a cut until the statement reaches the server. */
const LATE_MAX_MS = 1_500;
/** Random times below this are shorter or longer than the timeout of a statement. */
const SILENT_MAX_MS = 4_000;

/** Returns a random integer from 0 to `below - 1`. */
type Random = (below: number) => number;

/** The faults in the network between the instances and PostgreSQL. */
const CUTS: Record<string, (proxy: PostgresProxy, random: Random) => Promise<unknown>> = {
  'cuts before the commit, which happens later': async (proxy, random) => {
    const statement = await proxy.holdNext(PLANT_INSERT);
    statement.cut();
    await wait(random(LATE_MAX_MS));
    await statement.deliver();
  },
  'cuts during the commit': async proxy => {
    const statement = await proxy.holdNext(PLANT_INSERT);
    const delivered = statement.deliver();
    statement.cut();
    await delivered;
  },
  'cuts after the commit': async proxy => {
    const statement = await proxy.holdNext(PLANT_INSERT);
    await statement.deliver();
    statement.cut();
  },
  'late replies': async (proxy, random) => {
    const statement = await proxy.holdNext(PLANT_INSERT);
    await statement.deliver();
    await wait(random(SILENT_MAX_MS));
    statement.respond();
  },
  'cuts of every connection': async (proxy, random) => {
    await wait(random(50));
    proxy.cutAll();
  },
  'stalls of the server': async (proxy, random) => {
    proxy.stall();
    await wait(random(SILENT_MAX_MS));
    proxy.passAgain();
  },
};

/** A proxy before PostgreSQL cuts connections before, during and after a commit, or stalls. */
export const postgresCuts: Scenario = {
  name: 'postgres-cuts',
  summary:
    'connections to PostgreSQL cut before, during and after a commit, and a server that stalls, under load',
  needs: [],
  secondsMin: 10,
  finds: ['respond-before-commit'],
  run: order =>
    runOnStores(order, {
      roundsPerStore: 40,
      async setUp(opened) {
        const server = opened.use(await PostgresServer.start());
        const proxy = opened.use(await PostgresProxy.start(server.port));
        return { store: { database: proxy.url(await server.createDatabase()) }, place: proxy };
      },
      async round({ store, place: proxy, random }) {
        const names = Object.keys(CUTS);
        const name = names[random(names.length)]!;
        await CUTS[name]!(proxy, random);
        await store.recovered();
        return name;
      },
    }),
};
