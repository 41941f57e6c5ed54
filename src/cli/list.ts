import { Command } from 'commander';
import { printPlants } from './output/print-plants.ts';
import { addDatabaseOptions } from './shared/database-option.ts';
import { parseId } from './shared/id-argument.ts';
import { countUpTo } from './shared/setting.ts';

export function listCommand(): Command {
  return addDatabaseOptions(new Command('list'))
    .description('print the latest revision of each plant, sorted by id')
    .option('--tag <tag>', 'only plants with exactly this tag')
    .option(
      '--name <text>',
      'only plants whose name contains this text; case, accents and signs of hybrids do not matter',
    )
    .option('--from <id>', 'only plants with this id or a larger one', parseId)
    .option('--limit <count>', 'at most this many plants', countUpTo(Number.MAX_SAFE_INTEGER))
    .option('--json', 'print JSON Lines')
    .action(({ json, ...options }) => printPlants({ ...options, format: json ? 'json' : 'text' }, 'latest'));
}
