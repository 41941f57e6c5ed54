import { once } from 'node:events';
import { Command, Option } from 'commander';
import { newPlantJson } from '../contract/plant.ts';
import { latestOf } from '../store/latest-revisions.ts';
import { openReader } from '../store/open-store.ts';
import type { PlantRevision } from '../store/plant-store.ts';
import { csvLine } from './csv-line.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './database-option.ts';
import { tokenLabels } from './token-labels.ts';

/** Lines are handed to stdout in pieces of about this many characters: one write for each line costs far more. */
const PIECE_LENGTH = 64 * 1024;

interface ExportOptions extends DatabaseOptions {
  format: 'csv' | 'jsonl';
  revisions?: boolean;
}

export function exportCommand(): Command {
  return addDatabaseOptions(new Command('export'))
    .description('print every plant in the order of ids, as the store is at this moment')
    .addOption(
      new Option('--format <format>', 'CSV, or one JSON object a line')
        .choices(['csv', 'jsonl'])
        .default('csv'),
    )
    .option('--revisions', 'every revision of each plant, with its time and the label of its token')
    .addHelpText('after', '\nExample:\n  $ npx plant-store export > plants.csv')
    .action(exportPlants);
}

async function exportPlants(options: ExportOptions): Promise<void> {
  const { format, revisions = false } = options;
  const reader = await openReader(readDatabase(options));
  const layout = LAYOUTS[format][revisions ? 'all' : 'latest'];
  let count = 0;
  try {
    let piece = layout.head;
    let labelOf: ((tokenId: number) => string) | undefined;
    for await (const revision of revisions ? reader.revisions() : latestOf(reader.revisions())) {
      labelOf ??= await tokenLabels(reader);
      piece += layout.line(revision, labelOf(revision.recordedBy));
      count++;
      if (piece.length >= PIECE_LENGTH) {
        await write(piece);
        piece = '';
      }
    }
    await write(piece);
  } finally {
    await reader.close();
  }
  console.error(`${count.toLocaleString('en')} ${revisions ? 'revisions' : 'plants'} exported`);
}

interface Layout {
  head: string;
  /** @param tokenLabel of the token it came with */
  line(revision: PlantRevision, tokenLabel: string): string;
}

const LAYOUTS: Record<ExportOptions['format'], Record<'latest' | 'all', Layout>> = {
  csv: {
    latest: {
      head: csvLine(['id', 'name', 'tag']),
      line: ({ plant: { id, name, tag } }) => csvLine([String(id), name, tag]),
    },
    all: {
      head: csvLine(['id', 'revision', 'name', 'tag', 'recorded_at', 'recorded_by']),
      line: ({ plant: { id, name, tag }, revision, recordedAt }, tokenLabel) =>
        csvLine([String(id), String(revision), name, tag, new Date(recordedAt).toISOString(), tokenLabel]),
    },
  },
  jsonl: {
    latest: { head: '', line: ({ plant }) => `${newPlantJson(plant)}\n` },
    all: {
      head: '',
      line: ({ plant, revision, recordedAt }, tokenLabel) => {
        const record = { revision, recorded_at: new Date(recordedAt).toISOString(), recorded_by: tokenLabel };
        return `${newPlantJson(plant).slice(0, -1)},${JSON.stringify(record).slice(1)}\n`;
      },
    },
  },
};

/** Waits for a reader that is slower than the store, so that memory stays flat. */
async function write(piece: string): Promise<void> {
  if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
}
