import { Failure } from '../../src/cli/shared/failure.ts';
import { quoted, visible } from '../../src/formats/visible-text.ts';
import type { CsvForm } from './csv/csv-header.ts';
import { csvRows } from './csv/csv-rows.ts';
import { headerHint, textsFromLine } from './csv/header-row.ts';
import { jsonLinesRows } from './json/json-lines.ts';
import { isOneObject, jsonListRows } from './json/json-list.ts';
import { featureRow, type JsonOptions, jsonRow, type RowMaker } from './json/json-row.ts';
import { FEATURES } from './json/list-scanner.ts';
import { SeenMembers } from './json/seen-members.ts';
import { IdMaker, OWN_IDS } from './rows/id-maker.ts';
import { EMPTY, type PlantRows, ROW_LENGTH_MAX, readNames } from './rows/plant-row.ts';
import { CHUNK_BYTES, fileName, plantFileSize } from './text/file-bytes.ts';
import { fileTexts, type TextOptions } from './text/file-texts.ts';
import { countLineEnds } from './text/line-ends.ts';
import { TextOpening } from './text/text-opening.ts';

export interface PlantFileOptions extends TextOptions {
  form: CsvForm;
  /** Makes the ids; undefined if the files have them. */
  ids?: IdMaker | undefined;
}

/** The start of a file that shows its format and, in CSV, its delimiter. */
const START = /^\s*[[{]|[^\s,;|"][^\r\n]*[\r\n]/;
/** Lines without text, except a last CR that may be half of a CRLF. */
const BLANK_LINES = /^\s*(?:\n|\r(?!\n|$))/;

/** What the start of a file shows. */
interface FileStart {
  /** Number of the first line with text. */
  line: number;
  format: 'csv' | 'JSON Lines' | 'JSON array' | 'JSON object';
}

/**
 * Reads the rows, in the format that the first character shows. With `onVerified`, a file is first
 * read to its end as far as needed, so that a fault of the whole file comes before its first row.
 *
 * @throws {Failure} at a fault of the file
 */
export async function* fileRows(path: string, options: PlantFileOptions): PlantRows {
  await using opening = openingOf(path, options);
  const start = await readStart(path, opening, options);
  // Only at its end is it known that the object has one list.
  if (start.format === 'JSON object' && options.onVerified && (await plantFileSize(path)) !== undefined)
    await readThrough(path, options);
  yield* rowsOf(path, opening, start, options);
}

/** Reads a file to its end. @throws {Failure} at a fault of the file */
async function readThrough(path: string, options: PlantFileOptions): Promise<void> {
  const silent = {
    ...options,
    ids: options.ids && new IdMaker(options.ids.rule),
    onNote: () => {},
    onBytes: undefined,
    onVerified: undefined,
  };
  await using opening = openingOf(path, silent);
  const start = await readStart(path, opening, silent);
  for await (const _ of rowsOf(path, opening, start, silent));
}

function openingOf(path: string, options: PlantFileOptions): TextOpening {
  const { headerRow } = options.form;
  const texts = fileTexts(path, options);
  return new TextOpening(headerRow === undefined ? texts : textsFromLine(fileName(path), texts, headerRow));
}

/** @throws {Failure} if the file has no text */
async function readStart(path: string, opening: TextOpening, options: PlantFileOptions): Promise<FileStart> {
  const { form, ids } = options;
  const line = await readToText(opening, form.headerRow ?? 1);
  const first = /\S/.exec(opening.text)?.[0];
  if (first === undefined) throw new Failure(`${fileName(path)} ${EMPTY}`);
  // A title row may begin with a bracket, but a file with a header is no JSON.
  if (form.headerRow !== undefined || (first !== '[' && first !== '{')) return { line, format: 'csv' };
  if (first === '[') return { line, format: 'JSON array' };
  const plantMembers = new Set(readNames(form.columns, ids?.columns));
  return { line, format: (await isOneObject(opening, plantMembers)) ? 'JSON object' : 'JSON Lines' };
}

/** Reads the rows of a file whose start was read. */
async function* rowsOf(
  path: string,
  opening: TextOpening,
  start: FileStart,
  options: PlantFileOptions,
): PlantRows {
  const name = fileName(path);
  const { form, ids, onNote } = options;
  const { line, format } = start;
  if (format === 'csv') {
    const hint = form.headerRow === undefined ? headerHint(opening.text, line, options) : undefined;
    return yield* csvRows(name, opening.whole(), opening.text, { ...options, line, headerHint: hint });
  }
  // CSV has a header, which has shown that its rows have no ids.
  const seen = new SeenMembers(readNames(form.columns, ids?.columns));
  const rows = rowsWithoutIds(name, jsonRows(name, opening, start, options, seen));
  yield* rowsWithKnownTag(name, rows, () => seen.likeTag(form.columns));
  for (const note of seen.notes(form.columns)) onNote(`${name}: ${note}`);
}

function jsonRows(
  name: string,
  opening: TextOpening,
  { line, format }: FileStart,
  { form, ids, encoding, onNote }: PlantFileOptions,
  seen: SeenMembers,
): PlantRows {
  const rowOptions: JsonOptions = { columns: form.columns, ids, encoding, seen };
  const makeRow: RowMaker = (place, text) => jsonRow(place, text, rowOptions);
  if (format === 'JSON Lines') return jsonLinesRows(name, opening.whole(), line, makeRow);
  return jsonListRows(name, opening.whole(), line, seen.read, list => {
    if (list.kind === 'array') return makeRow;
    if (list.name !== FEATURES) {
      onNote(`${name} is a JSON object: its list ${quoted(list.name)} is read`);
      return makeRow;
    }
    onNote(
      `${name} is GeoJSON: the properties of each feature are read; without an id in them, that of the feature is`,
    );
    return (place, text) => featureRow(place, text, rowOptions);
  });
}

/** Yields the rows before the first one that has an id, although ids are made. */
async function* rowsWithoutIds(name: string, batches: PlantRows): PlantRows {
  for await (const rows of batches) {
    const withId = rows.findIndex(({ madeId }) => madeId?.kind === 'own id');
    if (withId !== 0) yield withId < 0 ? rows : rows.slice(0, withId);
    if (withId >= 0) throw new Failure(`${name}: ${rows[withId]!.place()} has a member id; ${OWN_IDS}`);
  }
}

/** Ends before the first row if a member may be a misspelt tag, since all plants would have none. */
async function* rowsWithKnownTag(
  name: string,
  batches: PlantRows,
  likeTag: () => string | undefined,
): PlantRows {
  let isChecked = false;
  for await (const rows of batches) {
    const like = isChecked ? undefined : likeTag();
    if (like !== undefined)
      throw new Failure(
        `${name}: the member ${quoted(like)} is not known, and the first row has no member tag; use --columns tag=${visible(like)} ` +
          'if it has the tags, --columns tag=tag if later rows have a tag, or --columns tag= to leave it out',
      );
    isChecked ||= rows.length > 0;
    yield rows;
  }
}

/** Reads lines without text, and the start of the text. @returns the number of its first line */
async function readToText(opening: TextOpening, firstLine: number): Promise<number> {
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
