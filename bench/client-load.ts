/**
 * Creates plants with the client of the package: takes an order as JSON on stdin, and prints a result as JSON.
 */
import { json as readJson } from 'node:stream/consumers';
import { PlantStore } from '../src/client/plant-store.ts';
import type { NewPlant } from '../src/contract/plant.ts';
import { wholeRangePlants } from '../test/harness/whole-range-plants.ts';

/** What is sent, and how. */
export interface ClientOrder {
  url: string;
  token: string;
  /** By which method of the client. */
  method: 'createPlant' | 'createPlants';
  /** Of all plants, these are sent, the first `from` ones left out. */
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

/** Sends one plant after the other, of those that others leave. */
async function sendAll(left: Iterator<NewPlant>): Promise<void> {
  for (let next = left.next(); !next.done; next = left.next()) await store.createPlant(next.value);
}
