/**
 * Sends one plant with the client, which tries again by itself until the plant is confirmed.
 *
 *   npm install PATH/plant-store-client-0.1.0.tgz
 *   export PLANT_STORE_URL=http://127.0.0.1:8080 PLANT_STORE_TOKEN=plant_...
 *   node send-plant.mjs 9007199254740993 'Monstera deliciosa' houseplant
 */
import { PlantStore, PlantStoreError } from 'plant-store-client';

const [id, name, tag] = process.argv.slice(2);
if (id === undefined || name === undefined) {
  console.error('Usage: node send-plant.mjs ID NAME [TAG]');
  process.exit(2);
}
// Address and token come from the environment.
const store = new PlantStore();
try {
  // The id stays text: a JavaScript number is exact only up to 2^53.
  const stored = await store.createPlant(tag === undefined ? { id, name } : { id, name, tag });
  console.log(`${stored.outcome} plant ${stored.id}, revision ${stored.revision}`);
} catch (error) {
  if (!(error instanceof PlantStoreError)) throw error;
  console.error(error.canRetry ? `${error.message}; send it again later` : error.message);
  process.exitCode = 1;
}
