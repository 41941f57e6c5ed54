import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import type { Measurement } from './measurements.ts';
import { plantStoreOn, type RunningSubject } from './subjects.ts';
import { type Durations, measureLoad, warmUp } from './trial.ts';

/** The share of a core that an instance may use, and the numbers of connections to all of them. */
const CORE_SHARE = 0.2;
const CONNECTIONS = [64, 192];
/** The period of the kernel's limit, see https://docs.kernel.org/scheduler/sched-bwc.html */
const PERIOD_US = 100_000;

/** Creates by instances on one PostgreSQL. Each has its share of a core, as on its own machine. */
export async function measureInstances(
  count: number,
  round: number,
  { warmUpSeconds, seconds, signal }: Durations,
): Promise<Measurement[]> {
  await using ended = new AsyncDisposableStack();
  const postgres = ended.use(await PostgresServer.start());
  const subject = `instances: ${count}`;
  const { start } = plantStoreOn(subject, await postgres.createDatabase());
  const running: RunningSubject[] = [];
  for (let instance = 0; instance < count; instance++) {
    const started = await start('');
    const unlimit = limitCpu(started.pid);
    ended.defer(() => started.stop().then(unlimit));
    running.push(started);
  }
  const together = <T>(load: (each: RunningSubject) => Promise<T>): Promise<T[]> =>
    // Loads that begin in the same millisecond would send the same ids.
    Promise.all(running.map((each, index) => wait(index * 2).then(() => load(each))));
  await together(each => warmUp(each, warmUpSeconds, signal, 'random'));
  const measurements: Measurement[] = [];
  for (const connections of CONNECTIONS) {
    const settings = {
      connections: Math.floor(connections / count),
      seconds,
      ids: 'random',
      signal,
    } as const;
    const loads = await together(each => measureLoad(each, settings));
    const ratePerSecond = loads.reduce((sum, { figures }) => sum + figures.ratePerSecond!, 0);
    measurements.push({ subject, round, connections, figures: { ratePerSecond } });
  }
  return measurements;
}

/** Limits a process by a control group. @returns a function that removes the group after its end */
function limitCpu(pid: number): () => void {
  const isFirst = existsSync('/sys/fs/cgroup/cpu');
  const group = join(isFirst ? '/sys/fs/cgroup/cpu' : '/sys/fs/cgroup', `plant-store-bench-${pid}`);
  mkdirSync(group);
  const quotaUs = PERIOD_US * CORE_SHARE;
  if (isFirst) writeFileSync(join(group, 'cpu.cfs_quota_us'), `${quotaUs}`);
  else writeFileSync(join(group, 'cpu.max'), `${quotaUs} ${PERIOD_US}`);
  writeFileSync(join(group, 'cgroup.procs'), String(pid));
  return () => rmdirSync(group);
}
