import { setTimeout as wait } from 'node:timers/promises';
import { newPlantJson } from '../src/contract/plant.ts';
import { faultsOf, type LoggedRequest } from '../test/harness/client-log.ts';
import { freePort } from '../test/harness/free-port.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { type ServeProcess, startServe } from '../test/harness/program.ts';
import { SharedLoad } from '../test/harness/shared-load.ts';
import { storedRevisions } from '../test/harness/stored-revisions.ts';
import type { Ordeal } from './ordeal.ts';
import { TcpProxy } from './tcp-proxy.ts';

const INSTANCES = 2;
const BETWEEN_RESTARTS_MS = 1_000;
const RESTARTS_MIN = 4;

export const rollingRestart: Ordeal = {
  name: 'rolling-restart',
  summary: `${INSTANCES} instances over one PostgreSQL behind a TCP proxy, restarted in turn under load`,
  finds: [],
  async run({ seed, budgetMs, signal, tell }) {
    await using server = await PostgresServer.start();
    const database = await server.createDatabase();
    const listens = await Promise.all(Array.from({ length: INSTANCES }, freePort));
    const start = (index: number): Promise<ServeProcess> =>
      startServe(database, ['--listen', `127.0.0.1:${listens[index]}`]);
    const instances: ServeProcess[] = [];
    const log: LoggedRequest[] = [];
    try {
      for (let index = 0; index < INSTANCES; index++) instances.push(await start(index));
      await using proxy = await TcpProxy.start(listens.map(port => () => port));
      await using load = await SharedLoad.start(
        instances.map(() => () => proxy.url),
        database,
        log,
        seed,
      );
      await load.keeps(100);
      const faults: string[] = [];
      const untilMs = performance.now() + budgetMs;
      let restarts = 0;
      for (; (restarts < RESTARTS_MIN || performance.now() < untilMs) && !signal.aborted; restarts++) {
        const index = restarts % INSTANCES;
        const { exitCode } = await instances[index]!.stop('SIGTERM');
        if (exitCode !== 0) faults.push(`an instance ended with ${exitCode}`);
        instances[index] = await start(index);
        await wait(BETWEEN_RESTARTS_MS);
        await load.keeps(100);
        tell(`${restarts + 1} restarts, ${log.length} requests`);
      }
      await load.stop();
      const { turnedAway } = proxy;
      return { ...(await judge(database, log, faults)), figures: figuresOf(log, restarts, turnedAway) };
    } finally {
      await Promise.all(instances.map(each => each.stop('SIGKILL')));
    }
  },
};

/** Beside what is wrong of itself: a request that was taken and did not get its 200. */
async function judge(
  database: string,
  log: readonly LoggedRequest[],
  faults: string[],
): Promise<{ faults: string[] }> {
  const stored = await storedRevisions(database);
  faults.push(...faultsOf(log, stored));
  const confirmed = new Set<string>();
  for (const { plant, answer } of log) if (answer?.status === 200) confirmed.add(newPlantJson(plant));
  const kept = new Set(stored.map(({ plant }) => newPlantJson(plant)));
  for (const { plant, answer } of log) {
    const content = newPlantJson(plant);
    if (answer !== undefined && answer.status >= 500)
      faults.push(`plant ${content} was answered ${answer.status}`);
    // Whether a request without an answer was taken shows where it is the only one of its content.
    if (answer === undefined && kept.has(content) && !confirmed.has(content))
      faults.push(`plant ${content} was stored, and its connection closed before the answer`);
  }
  return { faults };
}

function figuresOf(
  log: readonly LoggedRequest[],
  restarts: number,
  turnedAway: number,
): Record<string, number> {
  const figures: Record<string, number> = { restarts, requests: log.length };
  for (const { answer } of log) {
    const what = answer === undefined ? 'connection closed before an answer' : `answered ${answer.status}`;
    figures[what] = (figures[what] ?? 0) + 1;
  }
  figures['connections that no instance took'] = turnedAway;
  return figures;
}
