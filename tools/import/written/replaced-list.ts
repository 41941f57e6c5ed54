import type { PlantRevision } from '../../../src/core/commit/plant-revision.ts';
import type { NewPlant } from '../../../src/core/contract/plant.ts';
import { csvLine } from '../../../src/formats/csv.ts';
import { amount } from '../../../src/formats/number-text.ts';
import { quoted } from '../../../src/formats/visible-text.ts';
import { NewLinesFile } from './new-lines-file.ts';

/** Rows that a dry run prints. The file has all. */
export const REPLACED_SHOWN_MAX = 10;

const HEADER = csvLine(['id', 'stored_revision', 'stored_name', 'stored_tag', 'name', 'tag']);

/** The new CSV file with all rows whose id has other content: what is stored, and what the row has. */
export class ReplacedList extends NewLinesFile {
  /** Creates the file. @throws {Failure} if it exists or cannot be created */
  constructor(path: string) {
    super([path], '--show-replaced');
    this.write(HEADER);
  }

  /** @param stored undefined: the content is that of an earlier row. @throws {Failure} */
  add(stored: PlantRevision | undefined, { id, name, tag }: NewPlant): void {
    const { plant, revision } = stored ?? {};
    const number = revision === undefined ? undefined : String(revision);
    this.write(csvLine([String(id), number, plant?.name, plant?.tag, name, tag]));
  }
}

/** Makes a text such as `2 rows have other content than is stored`. */
export function otherContentText(rows: number): string {
  return `${amount(rows, 'row')} ${rows === 1 ? 'has' : 'have'} other content than is stored`;
}

/** Makes a text such as `316: "red maple" → "Angostura ramiflora"`. Tags are shown if they differ. */
export function changeText(stored: PlantRevision | undefined, plant: NewPlant): string {
  if (stored === undefined) return `${plant.id}: an earlier row → ${quoted(plant.name)}`;
  const isTagShown = stored.plant.tag !== plant.tag;
  const text = ({ name, tag }: Pick<NewPlant, 'name' | 'tag'>): string =>
    `${quoted(name)}${isTagShown ? ` (${tag === undefined ? 'no tag' : `tag ${quoted(tag)}`})` : ''}`;
  return `${plant.id}: ${text(stored.plant)} → ${text(plant)}`;
}
