import { setTimeout as wait } from 'node:timers/promises';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { residentBytesOf } from '../test/harness/process-memory.ts';
import { startServe } from '../test/harness/program.ts';
import { Flood, type FloodOrder, type FloodResult } from './flood.ts';
import { mebibytes, newSqliteFile, type Order, type Result, type Scenario } from './scenario.ts';

const TIMES = 4;
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

/**
 * Four times the rate that the service can process, half of the time on SQLite, half on PostgreSQL.
 */
export const overload: Scenario = {
  name: 'overload',
  summary: `${TIMES} times the rate that the service can process, from clients that do not wait for responses`,
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
  const { url, token, child, stop } = await startServe(database);
  const flood = async (seconds: number, load: Pick<FloodOrder, 'inFlightMax' | 'ratePerSecond'>) => {
    const target = { port: Number(new URL(url).port), token, connections: CONNECTIONS };
    await using flooding = new Flood({ kind: 'plants', ...target, ...load });
    await wait(seconds * 1000, undefined, { signal: order.signal });
    return await flooding.end();
  };
  try {
    const held = await flood(WARM_UP_SECONDS + HELD_SECONDS, { inFlightMax: HELD_IN_FLIGHT });
    const heldRate = rateOf(held, WARM_UP_SECONDS, HELD_SECONDS);
    const seconds = Math.max(
      OVERLOAD_SECONDS_MIN,
      Math.round(order.budgetMs / 2000 - 2 * HELD_SECONDS - WARM_UP_SECONDS - RECOVERY_SECONDS),
    );
    order.tell(`${engine}: ${Math.round(heldRate)} plants/s held; ${seconds} s of overload`);
    const over = await flood(seconds, { inFlightMax: OVERLOAD_IN_FLIGHT, ratePerSecond: TIMES * heldRate });
    const after = await flood(RECOVERY_SECONDS + HELD_SECONDS, { inFlightMax: HELD_IN_FLIGHT });
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

function assess(
  over: FloodResult,
  shares: { goodput: number; after: number },
  residentBytes: number,
): Result {
  const { '200': stored = 0, '503': busy = 0, ...others } = over.responses;
  const { '200': accepted, '503': rejected } = over.latencies;
  const faults: string[] = [];
  const expect = (holds: boolean, fault: string): void => {
    if (!holds) faults.push(fault);
  };
  expect(
    (accepted?.p99Ms ?? Infinity) < ACCEPTED_P99_MS_MAX,
    `p99 of accepted plants is ${accepted?.p99Ms} ms`,
  );
  expect(shares.goodput >= GOODPUT_MIN, `goodput is ${shares.goodput.toFixed(2)} of the held rate`);
  expect(residentBytes < RESIDENT_BYTES_MAX, `${mebibytes(residentBytes)} MiB of memory`);
  expect(shares.after >= FULL_SPEED_MIN, `2 s later the rate is ${shares.after.toFixed(2)} of the held rate`);
  expect(
    over.withRetryAfter === busy,
    `${busy - over.withRetryAfter} of ${busy} responses 503 have no Retry-After`,
  );
  expect(Object.keys(others).length === 0, `unexpected responses: ${JSON.stringify(over.responses)}`);
  expect(over.connectionsLost === 0, `${over.connectionsLost} connections were cut`);
  expect(over.pending === 0, `${over.pending} requests had no response`);
  return {
    faults,
    measurements: {
      'overload, goodput of the held rate': shares.goodput.toFixed(2),
      'overload, responses 200 and 503': `${stored}, ${busy}`,
      'overload, requests skipped at the limit in flight': over.skipped,
      'overload, accepted p50 and p99 in ms': `${accepted?.p50Ms}, ${accepted?.p99Ms}`,
      'overload, rejected p50 and p99 in ms': `${rejected?.p50Ms}, ${rejected?.p99Ms}`,
      'rate from 2 s after the overload, of the held rate': shares.after.toFixed(2),
      'peak of memory in MiB': mebibytes(residentBytes),
    },
  };
}

function rateOf({ storedEachSecond }: FloodResult, fromSecond: number, seconds: number): number {
  return (
    storedEachSecond.slice(fromSecond, fromSecond + seconds).reduce((sum, each) => sum + each, 0) / seconds
  );
}
