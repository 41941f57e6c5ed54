import { Command } from 'commander';
import { openerOf } from '../engines/openers/open-store.ts';
import { bytesText } from '../formats/bytes-text.ts';
import { amount } from '../formats/number-text.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './shared/database-option.ts';
import { countTags, tagsJson, tagsText } from './tag-counts.ts';

interface StatsOptions extends DatabaseOptions {
  byTag?: true;
  json?: true;
}

export function statsCommand(): Command {
  return addDatabaseOptions(new Command('stats'))
    .description('print how many plants, revisions, tokens and bytes the store has')
    .option('--by-tag', 'print how many plants have each tag, the most frequent tag first')
    .option('--json', 'print one JSON object')
    .action(printStats);
}

async function printStats(options: StatsOptions): Promise<void> {
  const store = openerOf(readDatabase(options));
  if (options.byTag) {
    const counts = await countTags(store);
    return console.log(options.json ? tagsJson(counts) : tagsText(counts));
  }
  await using reader = await store.openReader();
  const { plants, revisions, bytes } = await reader.size();
  const { length: tokens } = await reader.tokens();
  if (options.json) return console.log(JSON.stringify({ plants, revisions, tokens, bytes: bytes ?? null }));
  const size = bytes === undefined ? 'unknown' : `${bytesText(bytes)} (${amount(bytes, 'byte')})`;
  console.log(`plants     ${plants}\nrevisions  ${revisions}\ntokens     ${tokens}\nbytes      ${size}`);
}
