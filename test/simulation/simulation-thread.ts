import { parentPort } from 'node:worker_threads';
import type { Happened } from './part.ts';
import { PARTS } from './parts.ts';

/** Seeds of one part, in a row. */
export interface Order {
  part: string;
  first: number;
  seeds: number;
}

export type Report =
  | { kind: 'passed'; steps: number; happened: Happened }
  | { kind: 'fault'; message: string };

async function run({ part, first, seeds }: Order): Promise<Report> {
  const { simulate } = PARTS.find(({ name }) => name === part)!;
  const happened: Happened = {};
  let steps = 0;
  for (let seed = first; seed < first + seeds; seed++) {
    try {
      steps += await simulate(seed, happened);
    } catch (error) {
      const repeat = `npm run simulate -- --only ${part} --first ${seed} --seeds 1`;
      return { kind: 'fault', message: `${part}: ${(error as Error).stack}\nRepeat it with ${repeat}` };
    }
  }
  return { kind: 'passed', steps, happened };
}

parentPort!.on('message', async (order: Order) => parentPort!.postMessage(await run(order)));
