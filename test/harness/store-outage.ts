import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { NewPlant } from '../../src/contract/plant.ts';
import type { LoggedRequest, LoggedResponse } from './client-log.ts';
import { LoggingClient } from './logging-client.ts';
import type { RunningService } from './running-service.ts';
import { faultsIn } from './stored-revisions.ts';
import { until } from './until.ts';

/** Every request is answered by then, whatever the store does: that is a promise. */
const RESPONSE_MS_MAX = 5_000;
/** While the store is away a request is sent this often, so that some come at every moment of its way. */
const PROBE_INTERVAL_MS = 100;
/** As long as an operation of the store may take, and longer, so that some come when all patience is over. */
const AWAY_MS = 3_500;

let lastId = 0n;

/** Of an id that was not used before in this process. */
export function newPlant(): NewPlant {
  return { id: ++lastId, name: 'oak' };
}

/** Each on a connection of its own. */
export async function send(
  service: RunningService,
  plant: NewPlant,
  log: LoggedRequest[],
): Promise<LoggedResponse> {
  const client = new LoggingClient(service.url, service.token, log);
  const { response } = await client.send(plant);
  await client.close();
  assert.ok(response !== undefined, 'a request was not answered at all');
  return response;
}

/** What `/readyz` says. */
export async function readyz({ opsUrl }: RunningService): Promise<{ status: string; warnings?: string[] }> {
  const response = await fetch(`${opsUrl}/readyz`);
  const state = (await response.json()) as { status: string; warnings?: string[] };
  assert.equal(response.status === 200, state.status === 'ready');
  return state;
}

export async function isReady(service: RunningService): Promise<boolean> {
  return (await readyz(service)).status === 'ready';
}

export async function assertStored(database: string, log: readonly LoggedRequest[]): Promise<void> {
  assert.deepEqual(await faultsIn(database, log), []);
}

/** Sends plants while the store is away, for a while; each is answered 503 in time. */
export async function assertUnavailable(service: RunningService, log: LoggedRequest[]): Promise<void> {
  const begin = log.length;
  const since = performance.now();
  const responses: Promise<LoggedResponse>[] = [];
  while (performance.now() - since < AWAY_MS) {
    responses.push(send(service, newPlant(), log));
    await wait(PROBE_INTERVAL_MS);
  }
  for (const { status, retryAfter } of await Promise.all(responses)) {
    assert.deepEqual([status, retryAfter], [503, '1']);
  }
  const late = log.slice(begin).filter(({ sentAt, respondedAt }) => respondedAt - sentAt > RESPONSE_MS_MAX);
  assert.deepEqual(
    late.map(({ sentAt, respondedAt }) => `sent after ${sentAt - since} ms, took ${respondedAt - sentAt} ms`),
    [],
  );
}

/** How soon is measured by faults/postgres-kills.ts; here it only has to happen by itself. */
export async function assertBack(service: RunningService, log: LoggedRequest[]): Promise<void> {
  await until('a plant is kept again', async () => (await send(service, newPlant(), log)).status === 200);
  await until('/readyz says yes again', () => isReady(service));
  assert.ok(service.logged.some(line => line.includes('does not confirm plants')));
  assert.ok(service.logged.some(line => line.includes('confirms plants again')));
}
