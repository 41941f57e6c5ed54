/**
 * Runs in each runtime of test/client/client-runtimes.test.ts, so it uses no API of a single
 * runtime. The name of each plant is what the plant tests.
 */
import {
  PlantStore,
  PlantStoreError,
  type PlantStoreOptions,
  plantIdOf,
} from '../../src/client/plant-store.ts';

const EXACT = [9007199254740993n, 9223372036854775807n, -9223372036854775808n];

/** Result of {@link useClient} in each runtime. In a browser `moved` has no status. */
export const EXPECTED = {
  exact: EXACT.map(id => `${id} exact 🌱 1 created`).join(', '),
  retried: 'created',
  inOrder: '550 of 550',
  rejected: '40102 401 is permanent',
  moved: 'undefined 307 is permanent',
  cut: 'undefined undefined is transient',
  idOfTexts: '2360040201619519176',
};
const REVISIONS = 50;
const MANY = 500;

/**
 * Sends plants, and returns the results as text.
 *
 * @param service URL and token; from the environment when they are missing
 * @param droppingUrl the same service behind a gateway that fails at first
 */
export async function useClient(
  service: PlantStoreOptions,
  droppingUrl: string,
): Promise<Record<string, string>> {
  const store = new PlantStore(service);
  const exact: string[] = [];
  for (const id of EXACT) {
    const stored = await store.createPlant({ id, name: 'exact 🌱', tag: '' });
    exact.push(`${stored.id} ${stored.name} ${stored.revision} ${stored.outcome}`);
  }
  const behindDroppingProxy = new PlantStore({ ...service, url: droppingUrl });
  const { outcome } = await behindDroppingProxy.createPlant({ id: '1', name: 'retried' });

  const revisions = Array.from({ length: REVISIONS }, (_, index) => ({
    id: 7,
    name: `revision ${index + 1}`,
  }));
  const others = Array.from({ length: MANY }, (_, index) => ({ id: 1000 + index, name: 'one of many' }));
  let inOrder = 0;
  for await (const { plant, input } of store.createPlants([...revisions, ...others])) {
    const isRight =
      plant?.id === BigInt(input.id) && (plant.id !== 7n || plant.name === `revision ${plant.revision}`);
    if (isRight) inOrder++;
  }
  return {
    exact: exact.join(', '),
    retried: outcome,
    inOrder: `${inOrder} of ${REVISIONS + MANY}`,
    rejected: await errorOf(new PlantStore({ ...service, token: 'plant_stranger' })),
    moved: await errorOf(new PlantStore({ ...service, url: `${droppingUrl}/moved` })),
    cut: await errorOf(new PlantStore({ ...service, url: `${droppingUrl}/cut`, retryForMs: 0 })),
    idOfTexts: String(await plantIdOf('Plot 7', 'A\u0308 12')),
  };
}

async function errorOf(store: PlantStore): Promise<string> {
  try {
    const { outcome } = await store.createPlant({ id: 2, name: 'rejected' });
    return outcome;
  } catch (error) {
    if (!(error instanceof PlantStoreError)) throw error;
    return `${error.error} ${error.status} ${error.canRetry ? 'is transient' : 'is permanent'}`;
  }
}
