import { Failure } from '../../src/cli/shared/failure.ts';
import { quoted, visible } from '../../src/formats/visible-text.ts';
import { csvRows } from './csv/csv-rows.ts';
import { headerHint, textsFromLine } from './csv/header-row.ts';
import { jsonLinesRows } from './json/json-lines.ts';
import { isOneObject, jsonListRows } from './json/json-list.ts';
import { featureRow, type JsonOptions, jsonRow, type RowMaker } from './json/json-row.ts';
import { FEATURES } from './json/list-scanner.ts';
import { SeenMembers } from './json/seen-members.ts';
import { IdMaker, OWN_IDS } from './rows/id-maker.ts';
import { EMPTY, type PlantRows, ROW_LENGTH_MAX, type RowOptions, readNames } from './rows/plant-row.ts';
import { type BytesOptions, CHUNK_BYTES, fileName, plantFileSize } from './text/file-bytes.ts';
import { fileTexts, verifyTexts } from './text/file-texts.ts';
import { countLineEnds } from './text/line-ends.ts';
import { TextOpening } from './text/text-opening.ts';

export interface PlantFileOptions extends BytesOptions, RowOptions {}

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

/** Reads the rows, in the format that the first character shows. @throws {Failure} at a fault of the file */
export async function* fileRows(path: string, options: PlantFileOptions): PlantRows {
  await using opening = openingOf(path, options);
  yield* rowsOf(path, opening, await readStart(path, opening, options), options);
}

/**
 * Reads a file as far as needed to find a fault of the whole file before its rows are used: its text
 * to the end, then its first rows. A stream is not read, since it can be read only once.
 *
 * @param onBytes is called with the number of bytes read
 * @throws {Failure} at a fault of the file
 */
export async function verifyFile(
  path: string,
  { form, ids, stop }: PlantFileOptions,
  onBytes?: (bytes: number) => void,
): Promise<void> {
  if ((await plantFileSize(path)) === undefined) return;
  const options = { form, ids: ids && new IdMaker(ids.rule), stop, onNote: () => {} };
  await verifyTexts(path, form.encoding, { ...options, onBytes });
  await using opening = openingOf(path, options);
  const start = await readStart(path, opening, options);
  // Only at its end is it known that the object has one list.
  for await (const rows of rowsOf(path, opening, start, options))
    if (rows.length > 0 && start.format !== 'JSON object') return;
}

function openingOf(path: string, options: PlantFileOptions): TextOpening {
  const { headerRow } = options.form;
  const texts = fileTexts(path, options.form.encoding, options);
  return new TextOpening(headerRow === undefined ? texts : textsFromLine(fileName(path), texts, headerRow));
}

/** @throws {Failure} if the file has no text */
async function readStart(path: string, opening: TextOpening, options: PlantFileOptions): Promise<FileStart> {
  const { form } = options;
  const line = await readToText(opening, form.headerRow ?? 1);
  const first = /\S/.exec(opening.text)?.[0];
  if (first === undefined) throw new Failure(`${fileName(path)} ${EMPTY}`);
  // A title row may begin with a bracket, but a file with a header is no JSON.
  if (form.headerRow !== undefined || (first !== '[' && first !== '{')) return { line, format: 'csv' };
  if (first === '[') return { line, format: 'JSON array' };
  const plantMembers = new Set(readNames(options));
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
  const { line, format } = start;
  if (format === 'csv') {
    const hint = options.form.headerRow === undefined ? headerHint(opening.text, line, options) : undefined;
    return yield* csvRows(name, opening.whole(), opening.text, { ...options, line, headerHint: hint });
  }
  const seen = new SeenMembers(options);
  yield* checkedRows(name, jsonRows(name, opening, start, options, seen), seen);
  for (const note of seen.notes()) options.onNote(`${name}: ${note}`);
}

function jsonRows(
  name: string,
  opening: TextOpening,
  { line, format }: FileStart,
  { form, ids, onNote }: PlantFileOptions,
  seen: SeenMembers,
): PlantRows {
  const rowOptions: JsonOptions = { form, ids, seen };
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

/** Yields the rows of JSON before a fault that CSV would show in its header. */
async function* checkedRows(name: string, batches: PlantRows, seen: SeenMembers): PlantRows {
  let isTagChecked = false;
  for await (const rows of batches) {
    const like = isTagChecked ? undefined : seen.likeTag();
    if (like !== undefined)
      throw new Failure(
        `${name}: the member ${quoted(like)} is not known, and the first row has no member tag; use --columns tag=${visible(like)} ` +
          'if it has the tags, --columns tag=tag if later rows have a tag, or --columns tag= to leave it out',
      );
    isTagChecked ||= rows.length > 0;
    const withId = rows.findIndex(({ madeId }) => madeId?.kind === 'own id');
    if (withId !== 0) yield withId < 0 ? rows : rows.slice(0, withId);
    if (withId >= 0) throw new Failure(`${name}: ${rows[withId]!.place()} has a member id; ${OWN_IDS}`);
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
