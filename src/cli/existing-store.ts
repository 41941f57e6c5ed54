import type { DatabaseAddress } from '../store/database-url.ts';
import { openCommandStore, openReader } from '../store/open-store.ts';

/** Changes a store that must exist: a mistyped path, or one moved away, must not create another. */
export async function inExistingStore<T>(
  database: DatabaseAddress,
  change: (store: Awaited<ReturnType<typeof openCommandStore>>) => Promise<T>,
): Promise<T> {
  await (await openReader(database))[Symbol.asyncDispose]();
  const store = await openCommandStore(database);
  return await change(store).finally(() => store.close());
}
