import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import type { NewPlant } from '../../src/core/contract/plant.ts';
import type { LoggedRequest, LoggedResponse } from './client-log.ts';
import { LoggingClient } from './logging-client.ts';
import type { RunningService } from './running-service.ts';
import { until } from './until.ts';

/**
 * Far longer than a response takes on a busy machine. `test/limits.test.ts` checks the promised 5 s.
 */
const RESPONSE_MAX_MS = 15_000;
/** The interval of requests during an outage, so that some meet each state of the service. */
const PROBE_INTERVAL_MS = 100;
/** Longer than an operation of the store may take, so that some requests come after its timeout. */
const OUTAGE_MS = 3_500;

let lastId = 0n;

export function newPlant(): NewPlant {
  return { id: ++lastId, name: 'oak' };
}

export async function send(
  service: Pick<RunningService, 'url' | 'token'>,
  plant: NewPlant,
  log: LoggedRequest[],
): Promise<LoggedResponse> {
  const client = new LoggingClient(service.url, service.token, log);
  const { response } = await client.send(plant);
  await client.close();
  assert.ok(response !== undefined, 'a request had no response');
  return response;
}

export async function readyz({ opsUrl }: RunningService): Promise<{ status: string; warnings?: string[] }> {
  const response = await fetch(`${opsUrl}/readyz`);
  const state = (await response.json()) as { status: string; warnings?: string[] };
  assert.equal(response.status === 200, state.status === 'ready');
  return state;
}

export async function isReady(service: RunningService): Promise<boolean> {
  return (await readyz(service)).status === 'ready';
}

/**
 * Sends plants while the store is unavailable, and asserts that each response is 503 and in time.
 */
export async function assertUnavailable(service: RunningService, log: LoggedRequest[]): Promise<void> {
  const begin = log.length;
  const since = performance.now();
  const responses: Promise<LoggedResponse>[] = [];
  while (performance.now() - since < OUTAGE_MS) {
    responses.push(send(service, newPlant(), log));
    await wait(PROBE_INTERVAL_MS);
  }
  for (const { status, retryAfter } of await Promise.all(responses)) {
    assert.deepEqual([status, retryAfter], [503, '1']);
  }
  const late = log.slice(begin).filter(({ sentAt, respondedAt }) => respondedAt - sentAt > RESPONSE_MAX_MS);
  assert.deepEqual(late, []);
}

/** Asserts that the service recovers by itself. faults/postgres-kills.ts measures how fast. */
export async function assertBack(service: RunningService, log: LoggedRequest[]): Promise<void> {
  await until('a plant is stored again', async () => (await send(service, newPlant(), log)).status === 200);
  await until('/readyz is ready again', () => isReady(service));
  assert.ok(service.logged.some(line => line.includes('does not confirm plants')));
  assert.ok(service.logged.some(line => line.includes('confirms plants again')));
}
