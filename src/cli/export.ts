import { once } from 'node:events';
import { Command, Option } from 'commander';
import { newPlantJson } from '../contract/plant.ts';
import { openReader } from '../store/open-store.ts';
import type { PlantRevision } from '../store/plant-store.ts';
import { csvLine } from './csv-line.ts';
import { databaseOption } from './database-option.ts';

/** Lines are handed to stdout in pieces of about this many characters: one write for each line costs far more. */
const PIECE_LENGTH = 64 * 1024;

interface ExportOptions {
  database: string;
  format: 'csv' | 'jsonl';
  revisions?: boolean;
}

export function exportCommand(): Command {
  return new Command('export')
    .description('print every plant in the order of ids, as the store is at this moment')
    .addOption(databaseOption())
    .addOption(
      new Option('--format <format>', 'CSV, or one JSON object a line')
        .choices(['csv', 'jsonl'])
        .default('csv'),
    )
    .option('--revisions', 'every revision of each plant, with its time and the label of its token')
    .addHelpText('after', '\nExample:\n  $ npx plant-store export > plants.csv')
    .action(exportPlants);
}

async function exportPlants({ database, format, revisions = false }: ExportOptions): Promise<void> {
  const reader = openReader(database);
  const layout = LAYOUTS[format][revisions ? 'all' : 'latest'];
  let count = 0;
  try {
    let piece = layout.head;
    for (const revision of reader.plants(revisions ? 'all' : 'latest')) {
      piece += layout.line(revision);
      count++;
      if (piece.length >= PIECE_LENGTH) {
        await write(piece);
        piece = '';
      }
    }
    await write(piece);
  } finally {
    reader.close();
  }
  console.error(`${count.toLocaleString('en')} ${revisions ? 'revisions' : 'plants'} exported`);
}

interface Layout {
  head: string;
  line(revision: PlantRevision): string;
}

const LAYOUTS: Record<ExportOptions['format'], Record<'latest' | 'all', Layout>> = {
  csv: {
    latest: {
      head: csvLine(['id', 'name', 'tag']),
      line: ({ plant: { id, name, tag } }) => csvLine([String(id), name, tag]),
    },
    all: {
      head: csvLine(['id', 'revision', 'name', 'tag', 'recorded_at', 'recorded_by']),
      line: ({ plant: { id, name, tag }, revision, recordedAt, recordedBy }) =>
        csvLine([String(id), String(revision), name, tag, new Date(recordedAt).toISOString(), recordedBy]),
    },
  },
  jsonl: {
    latest: { head: '', line: ({ plant }) => `${newPlantJson(plant)}\n` },
    all: {
      head: '',
      line: ({ plant, revision, recordedAt, recordedBy }) => {
        const record = { revision, recorded_at: new Date(recordedAt).toISOString(), recorded_by: recordedBy };
        return `${newPlantJson(plant).slice(0, -1)},${JSON.stringify(record).slice(1)}\n`;
      },
    },
  },
};

/** Waits for a reader that is slower than the store, so that memory stays flat. */
async function write(piece: string): Promise<void> {
  if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
}
