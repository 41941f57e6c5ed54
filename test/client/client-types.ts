/**
 * Type tests of the client: code that must compile, and code that must not. `npm run typecheck`
 * fails when a line marked with @ts-expect-error compiles. This file is never run.
 */
import {
  type PlantInput,
  type PlantResult,
  PlantStore,
  PlantStoreError,
  type StoredPlant,
} from '../../src/client/plant-store.ts';

/** Compiles only when both types are the same. */
type Same<One, Other> =
  (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;
function same<_Holds extends true>(): void {}

export async function mustCompile(signal: AbortSignal, stream: AsyncIterable<PlantInput>): Promise<void> {
  const store = new PlantStore();
  new PlantStore({ url: new URL('https://plants.example'), token: undefined });

  const stored = await store.createPlant({ id: 9007199254740993n, name: 'Monstera deliciosa', tag: 'x' });
  await store.createPlant({ id: 1, name: 'Monstera deliciosa', tag: undefined }, {});
  // A variable may have more members than a plant.
  const tree = { id: 1, name: 'Monstera deliciosa', height: 3 };
  await store.createPlant(tree);
  same<Same<typeof stored, StoredPlant>>();
  same<Same<typeof stored.id, bigint>>();
  const { id, tag } = stored.toJSON();
  same<Same<[typeof id, typeof tag], [string, string | undefined]>>();
  same<Same<typeof stored.outcome, 'created' | 'unchanged' | 'revised'>>();

  for await (const result of store.createPlants(stream, { concurrency: 8, signal })) {
    same<Same<typeof result, PlantResult>>();
    // Either plant or error is present, and the types know which.
    if (result.error === undefined) same<Same<typeof result.plant, StoredPlant>>();
    else same<Same<typeof result.error, PlantStoreError>>();
  }
  void store.createPlants([{ id: 1, name: 'a' }], {
    onRetry: ({ canRetry }) => same<Same<typeof canRetry, boolean>>(),
  });
  // The result contains the input with its own type.
  for await (const { input } of store.createPlants([tree])) same<Same<typeof input.height, number>>();
  void store.createPlants(new Set<PlantInput>());
}

export async function mustNotCompile(store: PlantStore, error: PlantStoreError): Promise<void> {
  // @ts-expect-error a plant has an id
  await store.createPlant({ name: 'Monstera deliciosa' });
  // @ts-expect-error a tag may be absent, and is never null
  await store.createPlant({ id: 1n, name: 'a', tag: null });
  // @ts-expect-error an unknown member of a literal is most likely a typing error
  await store.createPlant({ id: 1n, name: 'a', tags: 'x' });
  // @ts-expect-error a misspelt option would be ignored
  new PlantStore({ url: 'https://plants.example', retryFor: 5 });
  const stored = await store.createPlant({ id: 1n, name: 'a' });
  // @ts-expect-error the id is a bigint, for a number would round it
  same<Same<typeof stored.id, number>>();
  if (error.error === 40001) return;
  // @ts-expect-error the catalogue has no such number
  if (error.error === 40499) return;
  // @ts-expect-error canRetry is required
  throw new PlantStoreError('no');
}
