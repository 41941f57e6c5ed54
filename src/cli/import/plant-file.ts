import { Failure } from '../output/failure.ts';
import { quoted } from '../output/visible-text.ts';
import type { CsvForm } from './csv-columns.ts';
import { csvRows } from './csv-rows.ts';
import { CHUNK_BYTES, fileName, plantFileSize } from './file-bytes.ts';
import { fileTexts, type TextReading } from './file-texts.ts';
import { beginsWithHeader, HEADER_LINES, headerHint, textsFromLine } from './header-row.ts';
import { FEATURES, isOneObject, objectList } from './json-object.ts';
import { featureRow, jsonRow } from './json-row.ts';
import { jsonArrayRows, jsonLinesRows } from './json-rows.ts';
import { countLineEnds } from './line-ends.ts';
import { EMPTY, type PlantRows, ROW_LENGTH_MAX } from './plant-row.ts';
import { TextOpening } from './text-opening.ts';

export interface Reading extends TextReading {
  form: CsvForm;
}

/** The start of a file that shows its format and, in CSV, its delimiter. */
const START = /^\s*[[{]|[^\s,;|"][^\r\n]*[\r\n]/;
/** Lines without text, except a last CR that may be half of a CRLF. */
const BLANK_LINES = /^\s*(?:\n|\r(?!\n|$))/;

/**
 * Reads the rows, in the format that the first character shows. With `onVerified`, a file is first
 * read to its end as far as needed, so that a fault of the whole file comes before its first row.
 *
 * @throws {Failure} at a fault of the file
 */
export async function* fileRows(path: string, reading: Reading): PlantRows {
  const name = fileName(path);
  const { form } = reading;
  const texts = fileTexts(path, reading);
  await using opening = new TextOpening(
    form.headerRow === undefined ? texts : textsFromLine(name, texts, form.headerRow),
  );
  const line = await readStart(opening, form.headerRow ?? 1);
  const first = /\S/.exec(opening.text)?.[0];
  if (first === undefined) throw new Failure(`${name} ${EMPTY}`);
  // A title row may begin with a bracket, but a file with a header is no JSON.
  if (form.headerRow !== undefined)
    return yield* csvRows(name, opening.whole(), opening.text, { ...reading, line });
  if (first === '[') return yield* jsonArrayRows(name, opening.whole(), line);
  if (first !== '{') {
    const hint = await readHint(opening, line, form);
    return yield* csvRows(name, opening.whole(), opening.text, { ...reading, line, headerHint: hint });
  }
  if (!(await isOneObject(opening))) return yield* jsonLinesRows(name, opening.whole(), line);
  // Only at its end is it known that the object has one list.
  if (reading.onVerified && (await plantFileSize(path)) !== undefined)
    for await (const _ of fileRows(path, {
      ...reading,
      onNote: () => {},
      onBytes: undefined,
      onVerified: undefined,
    }));
  yield* objectRows(name, opening, line, reading.onNote);
}

/** Reads lines without text, and the start of the text. @returns the number of its first line */
async function readStart(opening: TextOpening, firstLine: number): Promise<number> {
  let line = firstLine;
  while (!START.test(opening.text) && !opening.isAll) {
    if (opening.text.length >= (/\S/.test(opening.text) ? CHUNK_BYTES : ROW_LENGTH_MAX)) break;
    await opening.readOn();
    const blank = BLANK_LINES.exec(opening.text)?.[0] ?? '';
    line += countLineEnds(blank);
    opening.text = opening.text.slice(blank.length);
  }
  return line;
}

/** What to do about title rows, if the file seems to begin with them. */
async function readHint(opening: TextOpening, line: number, form: CsvForm): Promise<string | undefined> {
  if (beginsWithHeader(opening.text, form)) return undefined;
  await opening.extend(text => countLineEnds(text) >= HEADER_LINES);
  return headerHint(opening.text, line, form);
}

async function* objectRows(
  name: string,
  opening: TextOpening,
  firstLine: number,
  onNote: (line: string) => void,
): PlantRows {
  const list = await objectList(name, opening.whole(), firstLine);
  if (list === undefined) return;
  const isGeoJson = list.member === FEATURES;
  onNote(
    isGeoJson
      ? `${name} is GeoJSON: the properties of each feature are read; without an id in them, that of the feature is`
      : `${name} is a JSON object: its list ${quoted(list.member)} is read`,
  );
  yield* jsonArrayRows(name, list.texts, list.line, isGeoJson ? featureRow : jsonRow);
}
