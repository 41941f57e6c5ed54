import type { PlantRevision } from '../core/commit/plant-revision.ts';
import { csvLine } from './csv-line.ts';

/** The header of a CSV file with the lines of {@link revisionCsv}. */
export const REVISION_CSV_HEADER = csvLine(['id', 'revision', 'name', 'tag', 'recorded_at', 'recorded_by']);

/** One line for a revision. @param label of the token that sent it */
export function revisionCsv({ plant, revision, recordedAt }: PlantRevision, label: string): string {
  const time = new Date(recordedAt).toISOString();
  return csvLine([String(plant.id), String(revision), plant.name, plant.tag, time, label]);
}
