import { closeSync, openSync, writeFileSync } from 'node:fs';
import type { PlantRevision } from '../../core/commit/plant-revision.ts';
import type { NewPlant } from '../../core/contract/plant.ts';
import { csvLine } from '../../operate/csv.ts';
import { Failure } from '../output/failure.ts';
import { quoted } from '../output/visible-text.ts';

/** Rows that a dry run prints. The file has all. */
export const REPLACED_SHOWN_MAX = 10;

const HEADER = csvLine(['id', 'stored_revision', 'stored_name', 'stored_tag', 'name', 'tag']);

/** The new CSV file with all rows whose id has other content: what is stored, and what the row has. */
export class ReplacedList implements Disposable {
  readonly #path: string;
  readonly #descriptor: number;

  /** Creates the file. @throws {Failure} if it exists or cannot be created */
  constructor(path: string) {
    this.#path = path;
    try {
      this.#descriptor = openSync(path, 'wx');
    } catch (error) {
      throw unwritable(path, error);
    }
    this.#write(HEADER);
  }

  /** @param stored undefined: the content is that of an earlier row. @throws {Failure} */
  add(stored: PlantRevision | undefined, { id, name, tag }: NewPlant): void {
    const { plant, revision } = stored ?? {};
    const number = revision === undefined ? undefined : String(revision);
    this.#write(csvLine([String(id), number, plant?.name, plant?.tag, name, tag]));
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }

  #write(text: string): void {
    try {
      writeFileSync(this.#descriptor, text);
    } catch (error) {
      throw unwritable(this.#path, error);
    }
  }
}

/** Makes a text such as `316: "red maple" → "Angostura ramiflora"`. Tags are shown if they differ. */
export function changeText(stored: PlantRevision | undefined, plant: NewPlant): string {
  if (stored === undefined) return `${plant.id}: an earlier row → ${quoted(plant.name)}`;
  const isTagShown = stored.plant.tag !== plant.tag;
  const text = ({ name, tag }: Pick<NewPlant, 'name' | 'tag'>): string =>
    `${quoted(name)}${isTagShown ? ` (${tag === undefined ? 'no tag' : `tag ${quoted(tag)}`})` : ''}`;
  return `${plant.id}: ${text(stored.plant)} → ${text(plant)}`;
}

function unwritable(path: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  const fault = code === 'EEXIST' ? 'already exists and was not changed' : `cannot be written (${code})`;
  return new Failure(`${path} ${fault}; name another file with --show-replaced`);
}
