/**
 * Type tests of the client: code that must compile, and code that must not. `npm run typecheck`
 * fails when a line marked with @ts-expect-error compiles. This file is never run.
 */
import {
  PlantChanged,
  type PlantInput,
  PlantStore,
  PlantStoreError,
  plantIdOf,
  type StoredPlant,
} from '../../src/client/plant-store.ts';

export async function mustCompile(signal: AbortSignal, stream: AsyncIterable<PlantInput>): Promise<void> {
  const store = new PlantStore();
  new PlantStore({ url: new URL('https://plants.example'), token: undefined });
  await store.createPlant({ id: await plantIdOf('plot 7', '12'), name: 'a' });

  const stored: StoredPlant = await store.createPlant({ id: 9007199254740993n, name: 'a', tag: 'x' });
  await store.createPlant({ id: 1, name: 'a', tag: undefined }, {});
  // A variable may have more members than a plant.
  const tree = { id: 1, name: 'a', height: 3 };
  await store.createPlant(tree);
  void (stored.toJSON() satisfies { id: string; tag?: string });
  void (stored satisfies { id: bigint; outcome: 'created' | 'unchanged' | 'revised' });

  for await (const { plant, error } of store.createPlants(stream, { concurrency: 8, signal })) {
    // Either plant or error is present, and the types know which.
    void ((error === undefined ? plant : error) satisfies StoredPlant | PlantStoreError);
  }
  void store.createPlants([tree], { ifRevision: ({ height }) => height });
  void store.createPlants(new Set<PlantInput>(), { onRetry: ({ canRetry }): boolean => canRetry });
  // The result contains the input with its own type.
  for await (const { input } of store.createPlants([tree])) input.height++;
}

export async function mustNotCompile(store: PlantStore, error: PlantStoreError): Promise<void> {
  // @ts-expect-error a plant has an id
  await store.createPlant({ name: 'a' });
  // @ts-expect-error a tag may be absent, and is never null
  await store.createPlant({ id: 1n, name: 'a', tag: null });
  // @ts-expect-error an unknown member of a literal is most likely a typing error
  await store.createPlant({ id: 1n, name: 'a', tags: 'x' });
  // @ts-expect-error a misspelt option would be ignored
  new PlantStore({ url: 'https://plants.example', retryFor: 5 });
  // @ts-expect-error a revision is a number
  await store.createPlant({ id: 1n, name: 'a' }, { ifRevision: '0' });
  if (error instanceof PlantChanged) void (error.storedRevision satisfies number);
  if (error.error === 40001) return;
  // @ts-expect-error the catalogue has no such number
  if (error.error === 40499) return;
  // @ts-expect-error canRetry is required
  throw new PlantStoreError('no');
}
