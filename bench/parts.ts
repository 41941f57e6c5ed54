import { join } from 'node:path';
import { buildExecutable, measureImport, measureInstall, measureStart } from './commands.ts';
import { measurePostgresKill, measureServiceKill } from './faults.ts';
import { measureInstances } from './instances.ts';
import type { Measurement } from './measurements.ts';
import { writePlantFile } from './plant-file.ts';
import { prefillStore } from './prefill.ts';
import {
  DURABLE_PEERS,
  FASTIFY_ECHO,
  FLUSHED_ECHO,
  HTTP_ECHO,
  LESS_DURABLE_PEER,
  plantStoreOn,
  plantStoreOnPostgres,
  plantStoreOnSqlite,
} from './subjects.ts';
import { type Durations, type Plan, runTrial } from './trial.ts';

const LOAD_CONNECTIONS = [64, 256, 1];
const ALL_CONNECTIONS = [1, 4, 16, 64, 256, 1024];
/** The first is for an almost empty store: a load adds far more within a second. */
export const STORED_PLANTS = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/** The size of a tree inventory. */
const COMMAND_PLANTS = 152_153;

/** The names of the plant store in measurements. */
export const NAMES = {
  sqlite: 'plant store, SQLite',
  sqliteRandom: 'plant store, SQLite, random ids',
  postgres: 'plant store, PostgreSQL',
  citus: 'plant store, Citus',
  executable: 'plant store, executable',
} as const;

/** Numbers of instances that are compared. */
export const INSTANCES = [1, 3];

/** The settings of the steps of a part. */
export interface Setting {
  durations: Durations;
  /** A folder for the whole part. */
  folder: string;
  /** A database on a Citus coordinator. */
  citusUrl: string | undefined;
  /** The number of plants in the largest store. */
  storedMax: number;
}

/** A measurement that runs once in each round. */
export interface Step {
  name: string;
  run(round: number): Promise<Measurement[]> | Measurement[];
}

/** Measurements that are compared with each other. */
interface Part {
  summary: string;
  /** Steps that are compared are neighbours. */
  steps(setting: Setting): Step[];
}

export const PARTS: Record<string, Part> = {
  load: {
    summary: 'creates by the plant store, floors and peers; import',
    steps: ({ durations, folder, citusUrl }) => {
      const subjects = [
        ...[...DURABLE_PEERS, LESS_DURABLE_PEER, FASTIFY_ECHO, HTTP_ECHO, FLUSHED_ECHO],
        ...[plantStoreOnSqlite(NAMES.sqlite), plantStoreOnPostgres(NAMES.postgres)],
        ...(citusUrl === undefined ? [] : [plantStoreOn(NAMES.citus, citusUrl)]),
      ];
      const plans: Plan[] = subjects.map(subject => ({ subject, connections: LOAD_CONNECTIONS }));
      const random = plantStoreOnSqlite(NAMES.sqliteRandom);
      plans.push({ subject: random, connections: LOAD_CONNECTIONS, ids: 'random' });
      const file = join(folder, 'plants.csv');
      writePlantFile(file, COMMAND_PLANTS);
      return [
        ...plans.map(plan => trialStep(plan, durations)),
        { name: 'import', run: round => measureImport(file, COMMAND_PLANTS, round, durations) },
      ];
    },
  },
  connections: {
    summary: 'creates and latency of the plant store by connections',
    steps: ({ durations }) => [
      trialStep({ subject: plantStoreOnSqlite(NAMES.sqlite), connections: ALL_CONNECTIONS }, durations),
    ],
  },
  stored: {
    summary: 'creates by plants stored, up to 10 million: takes 3 GB of disk',
    steps: ({ durations, folder, storedMax }) =>
      STORED_PLANTS.filter(stored => stored <= storedMax).flatMap(stored => {
        const path = join(folder, `plants-${stored}.db`);
        console.error(`storing ${stored.toLocaleString('en')} plants`);
        prefillStore(path, stored);
        return [
          { name: NAMES.sqlite, ids: 'ascending' as const },
          { name: NAMES.sqliteRandom, ids: 'random' as const },
        ].map(({ name, ids }) => {
          const subject = plantStoreOnSqlite(name, undefined, path);
          return trialStep({ subject, connections: [64, 256], ids, stored }, durations);
        });
      }),
  },
  start: {
    summary: 'time from a start to the first 200',
    steps: ({ folder }) => {
      const executable = plantStoreOnSqlite(NAMES.executable, [buildExecutable(folder)]);
      const subjects = [executable, plantStoreOnSqlite(NAMES.sqlite), FASTIFY_ECHO];
      return subjects.map(subject => ({
        name: subject.name,
        run: round => measureStart(subject, round),
      }));
    },
  },
  instances: {
    summary: 'creates by instances on PostgreSQL, each with a fifth of a core: needs root',
    steps: ({ durations }) =>
      INSTANCES.map(count => ({
        name: `instances: ${count}`,
        run: round => measureInstances(count, round, durations),
      })),
  },
  faults: {
    summary: 'latency over time while the service or PostgreSQL is killed and started again',
    steps: ({ durations: { signal } }) => [
      { name: 'service killed', run: round => measureServiceKill(round, signal) },
      { name: 'PostgreSQL killed', run: round => measurePostgresKill(round, signal) },
    ],
  },
  install: {
    summary: 'disk space of an install that only runs the service',
    steps: () => [{ name: 'npm ci', run: measureInstall }],
  },
};

function trialStep(plan: Plan, durations: Durations): Step {
  const stored = plan.stored === undefined ? '' : `, ${plan.stored.toLocaleString('en')} stored`;
  return { name: `${plan.subject.name}${stored}`, run: round => runTrial(plan, round, durations) };
}
