import { median } from '../../test/harness/statistics.ts';
import { type Costs, type Load, type Prediction, predict } from '../group-commit-model.ts';
import { costsOf, MEASURED, OPEN_LOOP, OPEN_LOOP_RATE } from './connections.ts';
import type { MeasuredPlace } from './curve.ts';

/** Connections of a closed loop for which other disks are predicted. */
const CONNECTIONS = [1, 64, 256];
const DISKS: readonly [flushMs: number, asOf: string][] = [
  [0.05, 'NVMe that keeps its cache through a power cut'],
  [0.25, ''],
  [1, ''],
  [5, 'consumer SSD, network volume'],
  [10, 'spinning disk'],
  [15, 'spinning disk'],
];

/** How far the model is from what was measured, as a Markdown table. */
export function checkTable(places: readonly MeasuredPlace[]): string {
  const costs = costsOf(places);
  const closed = places
    .filter(({ of }) => of === MEASURED)
    .map(({ at, figures }) => {
      const { ratePerSecond, p50Us } = predict(costs, { connections: at });
      const rates = compared(median(figures.ratePerSecond!), ratePerSecond, whole);
      return [at.toLocaleString('en'), ...rates, ...compared(median(figures.latencyUs!), p50Us, ms)];
    });
  const open = places
    .filter(({ of }) => of === OPEN_LOOP)
    .map(({ at, figures }) => {
      const measuredUs = median(figures.openLatencyUs!);
      const held = predictIfHeld(costs, { ratePerSecond: at });
      const latencies = held ? compared(measuredUs, held.p50Us, ms) : [ms(measuredUs), 'not held', ''];
      return [`open loop, ${whole(at)}/s`, '', '', '', ...latencies];
    });
  const head = ['connections', 'creates/s', 'predicted', 'error', 'median, ms', 'predicted', 'error'];
  return table(head, [...closed, ...open]);
}

/** What the model says of other disks, as a Markdown table: only the time of a flush differs from this machine. */
export function disksTable(places: readonly MeasuredPlace[]): string {
  const costs = costsOf(places);
  const rows = DISKS.map(([flushMs, asOf]) => {
    const disk = { ...costs, flushUs: flushMs * 1000 };
    const closed = CONNECTIONS.map(connections => {
      const { ratePerSecond, p50Us } = predict(disk, { connections });
      return `${whole(ratePerSecond)}, ${ms(p50Us)} ms`;
    });
    const held = predictIfHeld(disk, { ratePerSecond: OPEN_LOOP_RATE });
    return [String(flushMs), asOf, ...closed, held ? `${ms(held.p50Us)} ms` : 'not held'];
  });
  const closed = CONNECTIONS.map(count => `creates/s at ${count}`);
  return table(['flush, ms', 'as of', ...closed, `open loop, ${whole(OPEN_LOOP_RATE)}/s`], rows);
}

function predictIfHeld(costs: Costs, load: Load): Prediction | undefined {
  try {
    return predict(costs, load);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function compared(measured: number, predicted: number, text: (value: number) => string): string[] {
  const percent = Math.round((predicted / measured - 1) * 100);
  return [text(measured), text(predicted), `${percent > 0 ? '+' : ''}${percent} %`];
}

function table(head: string[], rows: string[][]): string {
  return [head, head.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n');
}

/** To three digits, since no measurement has more. */
function whole(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en');
}

function ms(us: number): string {
  return String(Number((us / 1000).toPrecision(2)));
}
