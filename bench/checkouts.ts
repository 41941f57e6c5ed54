import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { byRound, type Measurement, ratio } from './measurements.ts';
import type { Row } from './rows.ts';
import { plantStoreOnSqlite, type Subject } from './subjects.ts';
import { type Durations, measureLoad, newFolder, startSettled, warmUp } from './trial.ts';

const CONNECTIONS = [1, 64, 256];
const RATIO_MIN = 0.97;
const OURS = 'this checkout';
const THEIRS = 'the other checkout';

/**
 * Compares creates of this checkout with those of another one. In each round both services run on
 * new stores. The loads have the order A B B A, so that a change of the machine's speed favours
 * neither.
 *
 * @param folder the other checkout, with its packages installed
 * @returns rows in which more is better
 * @throws if a response is not 200
 */
export async function compareCheckouts(folder: string, durations: Durations): Promise<Row[]> {
  const program = resolve(folder, 'bin/plant-store.js');
  if (!existsSync(program))
    throw new Error(`${folder} is not a checkout of the plant store: there is no ${program}`);
  const subjects = [
    plantStoreOnSqlite(OURS),
    plantStoreOnSqlite(THEIRS, [process.execPath, program]),
  ] as const;
  const measurements: Measurement[] = [];
  for (let round = 1; round <= durations.rounds; round++) {
    const [first, second] = round % 2 === 1 ? subjects : subjects.toReversed();
    const measured = await measureRound(first!, second!, round, durations);
    measurements.push(...measured);
    for (const { subject, connections, figures } of measured) {
      const rate = Math.round(figures.ratePerSecond!).toLocaleString('en');
      console.error(
        `round ${round} of ${durations.rounds}, ${connections} connections, ${subject}: ` +
          `${rate} creates/s, ${figures.cpuUs!.toFixed(1)} µs of CPU time each`,
      );
    }
  }
  return CONNECTIONS.flatMap(connections => {
    const metric = (subject: string, name: string) => byRound(measurements, subject, name, { connections });
    const bar = { atLeast: RATIO_MIN };
    const at = `${connections} connections`;
    return [
      {
        what: `creates/s against the other checkout, ${at}`,
        bar,
        reached: ratio(metric(OURS, 'ratePerSecond'), metric(THEIRS, 'ratePerSecond')),
      },
      {
        what: `creates per second of CPU time against the other checkout, ${at}`,
        bar,
        reached: ratio(metric(THEIRS, 'cpuUs'), metric(OURS, 'cpuUs')),
      },
    ];
  });
}

async function measureRound(
  first: Subject,
  second: Subject,
  round: number,
  { warmUpSeconds, seconds, signal }: Durations,
): Promise<Measurement[]> {
  await using stack = new AsyncDisposableStack();
  const services = [];
  for (const subject of [first, second]) {
    const folder = stack.use(newFolder());
    const service = await startSettled(subject, folder.path);
    stack.defer(async () => void (await service.stop()));
    await warmUp(service, warmUpSeconds, signal);
    services.push({ subject: subject.name, service });
  }
  const measurements: Measurement[] = [];
  for (const connections of CONNECTIONS) {
    const halves = services.map(() => [] as Record<string, number>[]);
    for (const which of [0, 1, 1, 0]) {
      const { figures } = await measureLoad(services[which]!.service, { connections, seconds, signal });
      halves[which]!.push(figures);
    }
    for (const [which, { subject }] of services.entries()) {
      const mean = (name: string) => (halves[which]![0]![name]! + halves[which]![1]![name]!) / 2;
      const figures = { ratePerSecond: mean('ratePerSecond'), cpuUs: mean('cpuUs') };
      measurements.push({ subject, round, connections, figures });
    }
  }
  return measurements;
}
