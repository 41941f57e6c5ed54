/**
 * Ends PostgreSQL and `serve` processes again and again (kill -9, every fifth end of PostgreSQL in good order) while
 * clients of three instances send plants, and compares what they were told with what is stored.
 *
 *   node bench/postgres-kills.ts [KILLS_OF_EACH] [SEED]
 */
import { type Kill, killUnderLoad } from '../test/postgres-kills.ts';

const [each = '50', seed = String(Date.now() % 1_000_000)] = process.argv.slice(2);

const ENDS: Kill[] = [
  'kill PostgreSQL',
  'freeze and kill PostgreSQL',
  'kill PostgreSQL',
  'freeze and kill PostgreSQL',
  'stop PostgreSQL',
];
const kills = Array.from({ length: Number(each) }, (_, index): Kill[] => [
  ENDS[index % ENDS.length]!,
  'kill an instance',
]).flat();
console.log(`seed ${seed}, ${new Date().toISOString().slice(0, 10)}`);
const figures = await killUnderLoad(kills, Number(seed), line => console.error(line));

const { faults, backAfterMs } = figures;
const count = (kind: string): number => faults.filter(fault => fault.startsWith(`${kind}:`)).length;
const sorted = backAfterMs.toSorted((a, b) => a - b);
console.log(`kills: ${kills.length}, half of them of PostgreSQL and half of an instance`);
console.log(
  `requests: ${figures.requests}; created ${figures.created}, revised ${figures.revised}, unchanged ${figures.unchanged}, unknown ${figures.unknown}`,
);
console.log(`stored revisions: ${figures.storedRevisions}`);
for (const kind of ['lost', 'ghost', 'gap', 'made twice', 'stored again'])
  console.log(`${kind}: ${count(kind)}`);
console.log(`faults of any kind: ${faults.length}`);
console.log(`longest answer: ${Math.round(figures.longestAnswerMs)} ms`);
console.log(
  `first 200 after PostgreSQL was back: median ${Math.round(sorted[sorted.length >> 1]!)} ms, longest ${Math.round(sorted.at(-1)!)} ms`,
);
for (const fault of faults.slice(0, 20)) console.log(fault);
if (faults.length > 0) process.exitCode = 1;
