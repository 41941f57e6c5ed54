import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { QUEUE_PLANTS_MAX } from '../src/contract/limits.ts';
import { runScript } from '../test/harness/load.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { type ServeProcess, startServe } from '../test/harness/program.ts';
import { residentBytesOf } from '../test/harness/server-process.ts';
import { mebibytes } from './figures.ts';
import { type Ordeal, type OrdealOrder, type OrdealResult, procObstacle } from './ordeal.ts';
import type { OverloadOrder, OverloadResult } from './overload-client.ts';

const CLIENT = fileURLToPath(new URL('./overload-client.ts', import.meta.url));
const TIMES = 4;
const CONNECTIONS = 64;
const WINDOW_REQUESTS = 16;
const WARM_UP_SECONDS = 3;
const HELD_SECONDS = 5;
const OVERLOAD_SECONDS_MIN = 10;
const ACCEPTED_P99_MS_MAX = 1_000;
const GOODPUT_MIN = 0.8;
const RESIDENT_BYTES_MAX = 512 * 1024 * 1024;
/** Full speed is what was held before, but for what two measurements of the same speed differ by. */
const FULL_SPEED_MIN = 0.8;
const RECOVERY_SECONDS = 2;

/** Four times what it can hold, on SQLite for one half of the time and on PostgreSQL for the other. */
export const overload: Ordeal = {
  name: 'overload',
  summary: `${TIMES} times the rate that the service holds, from clients that wait for no answer`,
  finds: [],
  obstacle: procObstacle,
  async run(order) {
    await using postgres = await PostgresServer.start();
    const folder = await mkdtemp(join(tmpdir(), 'plant-store-overload-'));
    try {
      const onSqlite = await overloaded('SQLite', `sqlite:${join(folder, 'plants.db')}`, order);
      const onPostgres = await overloaded('PostgreSQL', await postgres.createDatabase(), order);
      return {
        faults: [...onSqlite.faults, ...onPostgres.faults],
        figures: { ...onSqlite.figures, ...onPostgres.figures },
      };
    } finally {
      await rm(folder, { recursive: true });
    }
  },
};

async function overloaded(engine: string, database: string, order: OrdealOrder): Promise<OrdealResult> {
  const service = await startServe(database);
  try {
    const overloadSeconds = Math.max(
      OVERLOAD_SECONDS_MIN,
      Math.round(order.budgetMs / 2000 - 2 * HELD_SECONDS - WARM_UP_SECONDS),
    );
    order.tell(`${engine}: ${overloadSeconds} s of overload`);
    const result = await drive(service, overloadSeconds, order);
    return judge(engine, result, residentBytesOf(service.child.pid!, 'VmHWM'));
  } finally {
    await service.stop('SIGTERM');
  }
}

async function drive(
  { url, token }: ServeProcess,
  overloadSeconds: number,
  { seed, signal }: OrdealOrder,
): Promise<OverloadResult> {
  const order: OverloadOrder = {
    ...{ port: Number(new URL(url).port), token, firstId: 1e15 + seed * 1e9, connections: CONNECTIONS },
    ...{ windowRequests: WINDOW_REQUESTS, underWayMax: 2 * QUEUE_PLANTS_MAX, times: TIMES },
    ...{ warmUpSeconds: WARM_UP_SECONDS, heldSeconds: HELD_SECONDS, overloadSeconds },
  };
  return await runScript(CLIENT, order, signal);
}

function judge(engine: string, result: OverloadResult, residentBytes: number): OrdealResult {
  const { held, overload: over, after, connectionsLost, unanswered } = result;
  const heldRate = rateOf(held.keptEachSecond, held.seconds);
  const goodput = rateOf(over.keptEachSecond, over.seconds) / heldRate;
  const recovered = after.keptEachSecond.slice(RECOVERY_SECONDS, Math.floor(after.seconds));
  const afterRate = rateOf(recovered, recovered.length) / heldRate;
  const busy = over.answers['503'] ?? 0;
  const others = Object.entries(over.answers).filter(([status]) => status !== '200' && status !== '503');
  const faults: string[] = [];
  const expect = (holds: boolean, fault: string): void => {
    if (!holds) faults.push(`${engine}: ${fault}`);
  };
  expect(over.accepted.p99Ms < ACCEPTED_P99_MS_MAX, `of those accepted, p99 is ${over.accepted.p99Ms} ms`);
  expect(goodput >= GOODPUT_MIN, `goodput is ${goodput.toFixed(2)} of the held rate`);
  expect(residentBytes < RESIDENT_BYTES_MAX, `${mebibytes(residentBytes)} MiB of memory`);
  expect(afterRate >= FULL_SPEED_MIN, `2 s later the rate is ${afterRate.toFixed(2)} of the held rate`);
  expect(
    over.withRetryAfter === busy,
    `${busy - over.withRetryAfter} of ${busy} answers 503 say no Retry-After`,
  );
  expect(others.length === 0, `answers that nobody expects: ${JSON.stringify(over.answers)}`);
  expect(connectionsLost === 0, `${connectionsLost} connections were cut`);
  expect(unanswered === 0, `${unanswered} requests were never answered`);
  const figures = {
    'held rate per s': Math.round(heldRate),
    'overload, due per s': Math.round(heldRate * TIMES),
    'overload, sent per s': Math.round(over.sent / over.seconds),
    'overload, goodput of the held rate': goodput.toFixed(2),
    'overload, answered 200': over.answers['200'] ?? 0,
    'overload, answered 503': busy,
    'overload, due but not sent, as many as may be were under way': over.heldBack,
    'overload, accepted p50 and p99 in ms': `${over.accepted.p50Ms}, ${over.accepted.p99Ms}`,
    'overload, refused p50 and p99 in ms': `${over.refused.p50Ms}, ${over.refused.p99Ms}`,
    'rate from 2 s after the overload, of the held rate': afterRate.toFixed(2),
    'peak of memory in MiB': mebibytes(residentBytes),
  };
  return {
    faults,
    figures: Object.fromEntries(
      Object.entries(figures).map(([name, value]) => [`${engine}: ${name}`, value]),
    ),
  };
}

/** @param keptEachSecond null for a second in which nothing was kept, as JSON has it */
function rateOf(keptEachSecond: readonly (number | null)[], seconds: number): number {
  return keptEachSecond.reduce<number>((sum, each) => sum + (each ?? 0), 0) / seconds;
}
