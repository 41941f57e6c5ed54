import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../test/harness/free-port.ts';
import { Load } from '../test/harness/load.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { startServe } from '../test/harness/program.ts';
import { addToken } from '../test/harness/running-service.ts';
import type { Measurement } from './measurements.ts';
import { newFolder } from './trial.ts';

const LOAD = { connections: 64, open: { ratePerSecond: 2_000, seconds: 10 }, intervalMs: 100 };
const FAULT_AFTER_MS = 4_000;

/** A service, and the fault to inject. */
interface Target {
  url: string;
  token: string;
  /** Settles after the restart. */
  killAndRestart(): Promise<void>;
}

/** Kills the service on SQLite during a load at a fixed rate, and restarts it at once. */
export async function measureServiceKill(round: number, signal: AbortSignal): Promise<Measurement[]> {
  using folder = newFolder();
  const database = `sqlite:${join(folder.path, 'plants.db')}`;
  const listen = ['--listen', `127.0.0.1:${await freePort()}`];
  let serve = await startServe(database, listen);
  const { url, token } = serve;
  const killAndRestart = async () => {
    await serve.stop('SIGKILL');
    serve = await startServe(database, listen);
  };
  try {
    return await timelineOf('service killed, SQLite', { url, token, killAndRestart }, round, signal);
  } finally {
    await serve.stop('SIGTERM');
  }
}

/** Kills PostgreSQL during a load at a fixed rate, and restarts it at once. */
export async function measurePostgresKill(round: number, signal: AbortSignal): Promise<Measurement[]> {
  await using postgres = await PostgresServer.start();
  const database = await postgres.createDatabase();
  const serve = await startServe(database);
  const { url } = serve;
  const token = await addToken(database, 'load');
  const killAndRestart = async () => {
    await postgres.kill();
    await postgres.startAgain();
  };
  try {
    return await timelineOf('PostgreSQL killed', { url, token, killAndRestart }, round, signal);
  } finally {
    await serve.stop('SIGTERM');
  }
}

async function timelineOf(
  subject: string,
  { url, token, killAndRestart }: Target,
  round: number,
  signal: AbortSignal,
): Promise<Measurement[]> {
  await using load = new Load({ url, token, ...LOAD }, signal);
  const [{ timeline }] = await Promise.all([load.result, wait(FAULT_AFTER_MS).then(killAndRestart)]);
  return timeline.map(({ atMs, responses: { 200: stored, ...rejected }, lost }) => {
    const failures = Object.values(rejected).reduce((sum, { count }) => sum + count, lost);
    const times = stored && { p50Us: stored.p50Us, maxUs: stored.maxUs };
    return { subject, round, atMs, figures: { failures, ...times } };
  });
}
