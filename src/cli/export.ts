import { Command, InvalidArgumentError, Option } from 'commander';
import { instantOf } from '../formats/instant.ts';
import { type PrintOptions, printPlants } from './output/print-plants.ts';
import { addDatabaseOptions } from './shared/database-option.ts';
import { Failure } from './shared/failure.ts';

const HELP = `
A damaged revision is reported on stderr and not printed, and the exit code is 1.
If it may be the latest revision of a plant, nothing is printed for this plant.

With --at, only revisions that were recorded until this time count. Of each plant,
the one with the highest number is printed, even if a clock was set back.

To set plants back to their content at a time, import what --changed prints.

Examples:
  $ npx plant-store export > plants.csv
  $ npx plant-store export --at 2026-05-01T14:30+02:00 --changed > old.csv`;

export function exportCommand(): Command {
  return addDatabaseOptions(new Command('export'))
    .description('print all plants as they are when the export starts, sorted by id')
    .addOption(new Option('--format <format>', 'CSV or JSON Lines').choices(['csv', 'jsonl']).default('csv'))
    .option('--revisions', 'print every revision of each plant, with its time and the label of its token')
    .option('--at <time>', 'print the store as it was at this time, such as 2026-05-01T14:30Z', parsePastTime)
    .addOption(
      new Option('--changed', 'with --at: only plants that have other content now').conflicts('revisions'),
    )
    .addHelpText('after', HELP)
    .action(exportPlants);
}

/**
 * Reads a time of RFC 3339, also without seconds. A time without a zone could mean UTC, the zone
 * of this machine or that of the person. The wrong one would silently give another state.
 *
 * @returns milliseconds since 1970 UTC
 */
function parsePastTime(text: string): number {
  const time = instantOf(text);
  if (time === undefined)
    throw new InvalidArgumentError(
      'Write date, time of day and zone, such as 2026-05-01T14:30+02:00, or 2026-05-01T12:30:00.000Z for UTC.',
    );
  if (time > Date.now()) throw new InvalidArgumentError('This time is in the future.');
  return time;
}

async function exportPlants(options: PrintOptions): Promise<void> {
  if (options.changed && options.at === undefined) throw new Failure('--changed needs a time: give --at', 2);
  await printPlants(options, options.revisions ? 'revisions' : 'plants');
}
