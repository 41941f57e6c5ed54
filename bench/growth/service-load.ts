import { join } from 'node:path';
import { type LoadResult, type LoadSettings, runLoad } from '../../test/harness/load.ts';
import { plantStoreOnSqlite, type RunningSubject } from '../subjects.ts';
import { inNewFolder } from '../trial.ts';

/** A runtime compiles only what has run for some seconds. */
const WARM_UP_SECONDS = 3;
const WARM_UP_CONNECTIONS = 64;

/**
 * Does something with a service of its own, on a store of its own, and leaves nothing of either.
 *
 * @param prepare makes the store at a path, where it is not to be a new one
 */
export async function withService<Result>(
  run: (service: RunningSubject) => Promise<Result>,
  prepare?: (path: string) => void,
): Promise<Result> {
  return await inNewFolder(async folder => {
    const path = join(folder, 'plants.db');
    prepare?.(path);
    const service = await plantStoreOnSqlite(path).start(folder);
    try {
      return await run(service);
    } finally {
      await service.stop();
    }
  });
}

/**
 * Warms a service up and drives a closed loop.
 *
 * @throws when a request is not answered 200: the figures would be those of refusals
 */
export async function loadService(
  { url, token }: RunningSubject,
  settings: Omit<LoadSettings, 'url' | 'token'>,
): Promise<LoadResult> {
  const load = { url, token, ...settings };
  await runLoad({ ...load, connections: WARM_UP_CONNECTIONS, seconds: WARM_UP_SECONDS });
  const result = await runLoad(load);
  if (result.failures > 0) {
    throw new Error(
      `${result.failures} of ${result.requests} plants were not answered 200; look at the limits`,
    );
  }
  return result;
}
