import { setTimeout as wait } from 'node:timers/promises';
import { Load, type LoadResult } from '../test/harness/load.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { residentBytesOf } from '../test/harness/process-memory.ts';
import { startServe } from '../test/harness/program.ts';
import { addToken } from '../test/harness/running-service.ts';
import { mebibytes, newSqliteFile, type Order, type Result, type Scenario } from './scenario.ts';

const CONNECTIONS = 64;
/** For each connection, in the loads that the service can process. */
const HELD_IN_FLIGHT = 16;
/** For each connection. Together they are twice the queue limit of the service. */
const OVERLOAD_IN_FLIGHT = 512;
const WARM_UP_SECONDS = 3;
const HELD_SECONDS = 5;
const OVERLOAD_SECONDS_MIN = 10;
const ACCEPTED_P99_MS_MAX = 1_000;
const GOODPUT_MIN = 0.8;
const RESIDENT_BYTES_MAX = 512 * 1024 * 1024;
/** The share of the earlier rate that counts as full speed. Measurements differ that much. */
const FULL_SPEED_MIN = 0.8;
const RECOVERY_SECONDS = 2;

/** More requests than the queue of the service takes, half of the time on SQLite. */
export const overload: Scenario = {
  name: 'overload',
  summary: 'twice as many requests in flight as the service takes, and as many more as get a response',
  needs: ['linux'],
  secondsMin: 60,
  finds: [],
  async run(order) {
    await using opened = new AsyncDisposableStack();
    const server = opened.use(await PostgresServer.start());
    const result: Result = { faults: [], measurements: {} };
    await overloaded('SQLite', `sqlite:${newSqliteFile(opened)}`, order, result);
    await overloaded('PostgreSQL', await server.createDatabase(), order, result);
    return result;
  },
};

async function overloaded(engine: string, database: string, order: Order, result: Result): Promise<void> {
  const { url, child, stop } = await startServe(database);
  const token = await addToken(database, 'load');
  const flood = async (seconds: number, inFlightMax: number): Promise<LoadResult> => {
    const target = { url, token, connections: CONNECTIONS, intervalMs: 1000 };
    await using flooding = new Load({ ...target, inFlightMax });
    await wait(seconds * 1000, undefined, { signal: order.signal });
    return await flooding.end();
  };
  try {
    const held = await flood(WARM_UP_SECONDS + HELD_SECONDS, HELD_IN_FLIGHT);
    const heldRate = rateOf(held, WARM_UP_SECONDS, HELD_SECONDS);
    const seconds = Math.max(
      OVERLOAD_SECONDS_MIN,
      Math.round(order.budgetMs / 2000 - 2 * HELD_SECONDS - WARM_UP_SECONDS - RECOVERY_SECONDS),
    );
    order.tell(`${engine}: ${Math.round(heldRate)} plants/s held; ${seconds} s of overload`);
    const over = await flood(seconds, OVERLOAD_IN_FLIGHT);
    const after = await flood(RECOVERY_SECONDS + HELD_SECONDS, HELD_IN_FLIGHT);
    const shares = {
      goodput: rateOf(over, 0, seconds) / heldRate,
      after: rateOf(after, RECOVERY_SECONDS, HELD_SECONDS) / heldRate,
    };
    const { faults, measurements } = assess(over, shares, residentBytesOf(child.pid!, 'VmHWM'));
    result.faults.push(...faults.map(fault => `${engine}: ${fault}`));
    for (const [name, value] of Object.entries({ 'held rate per s': Math.round(heldRate), ...measurements }))
      result.measurements[`${engine}: ${name}`] = value;
  } finally {
    await stop('SIGTERM');
  }
}

function assess(over: LoadResult, shares: { goodput: number; after: number }, residentBytes: number): Result {
  const { 200: accepted, 503: rejected, ...others } = over.responses;
  const busy = rejected?.count ?? 0;
  const ms = (us: number | undefined): string => `${((us ?? Infinity) / 1000).toFixed(0)} ms`;
  const faults: string[] = [];
  const expect = (holds: boolean, fault: string): void => {
    if (!holds) faults.push(fault);
  };
  const isFast = (accepted?.p99Us ?? Infinity) < ACCEPTED_P99_MS_MAX * 1000;
  expect(isFast, `p99 of accepted plants is ${ms(accepted?.p99Us)}`);
  expect(shares.goodput >= GOODPUT_MIN, `goodput is ${shares.goodput.toFixed(2)} of the held rate`);
  expect(residentBytes < RESIDENT_BYTES_MAX, `${mebibytes(residentBytes)} MiB of memory`);
  expect(shares.after >= FULL_SPEED_MIN, `2 s later the rate is ${shares.after.toFixed(2)} of the held rate`);
  expect(
    over.withRetryAfter === busy,
    `${busy - over.withRetryAfter} of ${busy} responses 503 have no Retry-After`,
  );
  expect(Object.keys(others).length === 0, `unexpected responses: ${Object.keys(others)}`);
  expect(over.lost + over.pending === 0, `${over.lost + over.pending} requests had no response`);
  return {
    faults,
    measurements: {
      'overload, goodput of the held rate': shares.goodput.toFixed(2),
      'overload, responses 200 and 503': `${accepted?.count ?? 0}, ${busy}`,
      'overload, accepted p50 and p99': `${ms(accepted?.p50Us)}, ${ms(accepted?.p99Us)}`,
      'overload, rejected p50 and p99': `${ms(rejected?.p50Us)}, ${ms(rejected?.p99Us)}`,
      'rate from 2 s after the overload, of the held rate': shares.after.toFixed(2),
      'peak of memory in MiB': mebibytes(residentBytes),
    },
  };
}

function rateOf({ timeline }: LoadResult, fromSecond: number, seconds: number): number {
  const counted = timeline.slice(fromSecond, fromSecond + seconds);
  return counted.reduce((sum, { responses }) => sum + (responses[200]?.count ?? 0), 0) / seconds;
}
