/**
 * The client against the load tool (wrk where it is installed, else autocannon), on a new store in each round, every
 * other round in the opposite order: plants a second with 64 in flight. Both send ids without order; the client's lie over
 * the whole range of int64, and the export is compared with what was sent.
 *
 *   node bench/client-rate.ts [ROUNDS] [PLANTS]
 */
import { fileURLToPath } from 'node:url';
import { hasWrk, loadTool, runLoad, runScript } from '../test/harness/load.ts';
import { spread } from '../test/harness/statistics.ts';
import { differencesInExport, wholeRangePlants } from '../test/harness/whole-range-plants.ts';
import type { ClientOrder, ClientResult } from './client-load.ts';
import { installPeers } from './peer-packages.ts';
import { plantStoreOnSqlite } from './subjects.ts';
import { inNewFolder } from './trial.ts';

const IN_FLIGHT = 64;
const LOAD = { connections: IN_FLIGHT, ids: 'random' } as const;
const SECONDS = 4;
const BAR = 0.5;
const CLIENT_LOAD = fileURLToPath(new URL('./client-load.ts', import.meta.url));

const [rounds = '5', plants = '100000'] = process.argv.slice(2);
const count = Number(plants);
const METHODS = ['createPlant', 'createPlants'] as const;
const rates: Record<string, number[]> = { load: [], createPlant: [], createPlants: [] };
const cpus: Record<string, number[]> = { createPlant: [], createPlants: [] };
let differences = 0;

if (!hasWrk()) await installPeers();
for (let round = 1; round <= Number(rounds); round++) await inNewFolder(folder => runRound(folder, round));

console.log(`${loadTool()}: ${shown(rates.load!)} creates/s`);
for (const method of METHODS) {
  const shares = rates[method]!.map((rate, round) => rate / rates.load![round]!);
  const { median, min, max } = spread(shares)!;
  const share = `${median.toFixed(2)} of it (${min.toFixed(2)}..${max.toFixed(2)}), to be at least ${BAR}`;
  console.log(`${method}: ${shown(rates[method]!)} creates/s, ${shown(cpus[method]!)} µs each; ${share}`);
}
console.log(`differences between what was sent and the export: ${differences}`);

/** Each method sends one half of the plants. */
async function runRound(folder: string, round: number): Promise<void> {
  const running = await plantStoreOnSqlite().start(folder);
  const { url, token } = running;
  const half = Math.floor(count / 2);
  const steps = [
    async () => {
      rates.load!.push((await runLoad({ url, token, ...LOAD, seconds: SECONDS })).ratePerSecond);
    },
    ...METHODS.map((method, index) => async () => {
      const order: ClientOrder = {
        ...{ url, token, method, inFlight: IN_FLIGHT },
        ...(index === 0 ? { from: 0, to: half } : { from: half, to: count }),
      };
      const { ratePerSecond, cpuUs } = await runScript<ClientResult>(CLIENT_LOAD, order, undefined);
      rates[method]!.push(ratePerSecond);
      cpus[method]!.push(cpuUs);
    }),
  ];
  try {
    await runLoad({ url, token, ...LOAD, seconds: SECONDS });
    for (const step of round % 2 === 1 ? steps : steps.toReversed()) await step();
  } finally {
    await running.stop();
  }
  differences += await differencesInExport(wholeRangePlants(count), `sqlite:${folder}/plants.db`);
}

function shown(values: number[]): string {
  const { median, min, max } = spread(values)!;
  const text = (value: number) => Math.round(value).toLocaleString('en');
  return `${text(median)} (${text(min)}..${text(max)})`;
}
