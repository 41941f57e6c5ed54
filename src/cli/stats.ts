import { Command } from 'commander';
import { openReader } from '../store/open-store.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './database-option.ts';

export function statsCommand(): Command {
  return addDatabaseOptions(new Command('stats'))
    .description('print how many plants, revisions, tokens and bytes the store has')
    .action(async (options: DatabaseOptions) => {
      await using reader = await openReader(readDatabase(options));
      const { plants, revisions, bytes = 'unknown' } = await reader.size();
      const { length } = await reader.tokens();
      console.log(`plants     ${plants}\nrevisions  ${revisions}\ntokens     ${length}\nbytes      ${bytes}`);
    });
}
