import { Command } from 'commander';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from '../command-line/database-option.ts';
import { storeAt } from '../engines/openers/open-store.ts';
import { bytesText } from '../formats/bytes-text.ts';
import { amount } from '../formats/number-text.ts';

export function statsCommand(): Command {
  return addDatabaseOptions(new Command('stats'))
    .description('print how many plants, revisions, tokens and bytes the store has')
    .option('--json', 'print one JSON object')
    .action(async (options: DatabaseOptions & { json?: true }) => {
      await using reader = await storeAt(readDatabase(options)).openReader();
      const { plants, revisions, bytes } = await reader.size();
      const { length: tokens } = await reader.tokens();
      if (options.json)
        return console.log(JSON.stringify({ plants, revisions, tokens, bytes: bytes ?? null }));
      const size = bytes === undefined ? 'unknown' : `${bytesText(bytes)} (${amount(bytes, 'byte')})`;
      console.log(`plants     ${plants}\nrevisions  ${revisions}\ntokens     ${tokens}\nbytes      ${size}`);
    });
}
