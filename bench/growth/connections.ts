import { runLoad, runOpenLoop } from '../../test/harness/load.ts';
import { median } from '../../test/harness/statistics.ts';
import { type Costs, predict } from '../group-commit-model.ts';
import { measureCosts } from '../group-commit-model-costs.ts';
import { inNewFolder } from '../trial.ts';
import { type Bench, type Curve, type MeasuredPlace, measureInRounds } from './curve.ts';
import { loadService, withService } from './service-load.ts';

const CONNECTIONS = [1, 4, 8, 16, 64, 256, 1024];
/** An open loop slow enough for every disk that the model is asked about. */
export const OPEN_LOOP_RATE = 5_000;
const OPEN_LOOP_CONNECTIONS = 64;
/** Names of lines; only the first one is in the plot. */
export const MEASURED = 'measured';
export const OPEN_LOOP = 'open loop';
const COSTS = 'costs';

/** How many send at a time; with it the model of group commit is put to the test. */
export const connections: Curve = {
  name: 'connections',
  title: 'Creates by connections, measured and predicted',
  description:
    'Durable creates a second and latency in a closed loop, by the number of connections. More connections share a ' +
    'flush until the processor is full; from there on only the latency grows. The model of group commit is beside it.',
  x: { label: 'connections', scale: 'log', ticks: [1, 4, 16, 64, 256, 1024], format: String },
  panels: [
    { y: { label: 'creates/s', scale: 'linear' }, figure: 'ratePerSecond' },
    { y: { label: 'median latency, ms', scale: 'log' }, figure: 'latencyUs', unit: 1000 },
  ],
  measure: async bench => {
    const places = [
      ...CONNECTIONS.map(at => ({ at, of: MEASURED, measure: () => measureClosedLoop(bench, at) })),
      { at: OPEN_LOOP_RATE, of: OPEN_LOOP, measure: () => measureOpenLoop(bench) },
      // In each round, so that the model is asked about the machine as it was then.
      { at: 0, of: COSTS, measure: () => measureModelCosts(bench) },
    ];
    return withPredictions(await measureInRounds(bench, places, ({ measure }) => measure()));
  },
};

async function measureModelCosts(bench: Bench): Promise<Record<string, number>> {
  return { ...(await inNewFolder(folder => measureCosts(folder, bench.seconds))) };
}

/** What the model is given: the medians of what was measured. */
export function costsOf(places: readonly MeasuredPlace[]): Costs {
  const { figures } = places.find(({ of }) => of === COSTS)!;
  const medians = Object.entries(figures).map(([name, values]) => [name, median(values)]);
  return Object.fromEntries(medians) as Costs;
}

async function measureClosedLoop(bench: Bench, count: number): Promise<Record<string, number>> {
  return await withService(async service => {
    const load = { connections: count, seconds: bench.seconds };
    const { ratePerSecond, p50Us, p99Us } = await loadService(service, load);
    return { ratePerSecond, latencyUs: p50Us, p99Us };
  });
}

async function measureOpenLoop(bench: Bench): Promise<Record<string, number>> {
  return await withService(async service => {
    const { url, token } = service;
    const load = { url, token, connections: OPEN_LOOP_CONNECTIONS, seconds: bench.seconds };
    await runLoad(load);
    const { p50Us } = await runOpenLoop({ ...load, ratePerSecond: OPEN_LOOP_RATE });
    return { openLatencyUs: p50Us };
  });
}

/** Lines in the order of the plot: what was measured, what the model says, and the latency that 1 in 100 exceed. */
function withPredictions(places: readonly MeasuredPlace[]): MeasuredPlace[] {
  const costs = costsOf(places);
  const closed = places.filter(({ of }) => of === MEASURED);
  const predicted = closed.map(({ at }) => {
    const { ratePerSecond, p50Us } = predict(costs, { connections: at });
    return { at, of: 'predicted', figures: { ratePerSecond: [ratePerSecond], latencyUs: [p50Us] } };
  });
  const slow = closed.map(({ at, figures }) => ({
    at,
    of: 'measured p99',
    figures: { latencyUs: figures.p99Us! },
  }));
  return [...closed, ...predicted, ...slow, ...places.filter(({ of }) => of !== MEASURED)];
}
