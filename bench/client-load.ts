/**
 * Creates plants with the client. Reads an order as JSON from stdin, and prints the result as JSON.
 */
import { json as readJson } from 'node:stream/consumers';
import { PlantStore } from '../src/client/plant-store.ts';
import type { NewPlant } from '../src/contract/plant.ts';
import { wholeRangePlants } from '../test/harness/whole-range-plants.ts';

/** The plants to send, and how. */
export interface ClientOrder {
  url: string;
  token: string;
  /** The method of the client. */
  method: 'createPlant' | 'createPlants';
  /** The range of plants to send; `to` is exclusive. */
  from: number;
  to: number;
  inFlight: number;
}

const { url, token, method, from, to, inFlight } = (await readJson(process.stdin)) as ClientOrder;
const store = new PlantStore({ url, token });
const plants = wholeRangePlants(to).slice(from);
const sinceMs = performance.now();
const cpuBefore = process.cpuUsage();
if (method === 'createPlants') {
  for await (const { error } of store.createPlants(plants, { concurrency: inFlight })) {
    if (error !== undefined) throw error;
  }
} else {
  const left: Iterator<NewPlant> = plants.values();
  await Promise.all(Array.from({ length: inFlight }, () => sendAll(left)));
}
const seconds = (performance.now() - sinceMs) / 1000;
const { user, system } = process.cpuUsage(cpuBefore);
console.log(
  JSON.stringify({ ratePerSecond: plants.length / seconds, clientCpuUs: (user + system) / plants.length }),
);

/** Takes plants from a shared iterator and sends them one after the other. */
async function sendAll(left: Iterator<NewPlant>): Promise<void> {
  for (let next = left.next(); !next.done; next = left.next()) await store.createPlant(next.value);
}
