/**
 * Takes the primary away under the load of three instances, promotes its synchronous standby, and measures how soon
 * plants are taken again. Each run has servers of its own; the host that is named first changes from run to run.
 *
 *   node bench/postgres-failover.ts [RUNS_OF_EACH] [SEED]
 */
import { failOverUnderLoad } from '../test/postgres-failover.ts';

const [each = '6', seed = String(Date.now() % 1_000_000)] = process.argv.slice(2);
console.log(`seed ${seed}, ${new Date().toISOString().slice(0, 10)}`);
console.log(
  'primary, named first | kept | unknown | faults | first 200 | each instance | longest answer (ms)',
);
for (let run = 0; run < Number(each); run++) {
  for (const how of ['kill', 'hold'] as const) {
    const firstHost = run % 2 === 0 ? 'primary' : 'standby';
    const figures = await failOverUnderLoad(how, firstHost, Number(seed) + run);
    const times = [figures.firstBackAfterMs, figures.allBackAfterMs, figures.longestAnswerMs].map(Math.round);
    const { kept, unknown, faults } = figures;
    console.log([`${how}, ${firstHost}`, kept, unknown, faults.length, ...times].join(' | '));
    for (const fault of faults.slice(0, 20)) console.log(fault);
    if (faults.length > 0) process.exitCode = 1;
  }
}
