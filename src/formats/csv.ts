import type { PlantRevision } from '../core/commit/plant-revision.ts';

// RFC 4180 section 2, rule 6: such a field is enclosed in double quotes.
const NEEDS_QUOTES = /[",\r\n]/;

/** Writes one line of a CSV file, ended by LF. An empty text is `""`; an absent value is empty. */
export function csvLine(fields: readonly (string | undefined)[]): string {
  return `${fields.map(csvField).join(',')}\n`;
}

function csvField(value: string | undefined): string {
  if (value === undefined) return '';
  if (value === '') return '""';
  return NEEDS_QUOTES.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

/** The header of a CSV file with the lines of {@link revisionCsv}. */
export const REVISION_CSV_HEADER = csvLine(['id', 'revision', 'name', 'tag', 'recorded_at', 'recorded_by']);

/** One line for a revision. @param label of the token that sent it */
export function revisionCsv({ plant, revision, recordedAt }: PlantRevision, label: string): string {
  const time = new Date(recordedAt).toISOString();
  return csvLine([String(plant.id), String(revision), plant.name, plant.tag, time, label]);
}
