import { Failure } from '../../../src/cli/shared/failure.ts';
import { quoted, visible } from '../../../src/formats/visible-text.ts';
import { IGNORED_ID } from '../rejects/rejects-format.ts';
import { isLikeTag } from '../rows/confusing-name.ts';
import { OWN_IDS } from '../rows/id-maker.ts';
import { MEMBERS, type RowOptions, readNames, shownColumns } from '../rows/plant-row.ts';
import type { Fields } from './csv-records.ts';

export interface CsvOptions extends RowOptions {
  /** Called with lines about the whole file: the ignored columns, and quotes that are text. */
  onNote: (line: string) => void;
  /** Number of the first line of the text. */
  line?: number;
  /** What to do if the first row is no header. */
  headerHint?: string | undefined;
}

/** Where the columns of a plant stand in a row. */
export interface Positions {
  /** Of id, name and tag; undefined if there is no tag, or the id is made. */
  members: (number | undefined)[];
  /** Of the texts that make the id. */
  idTexts: number[];
}

/** Makes names comparable. In NFC, a ç equals c with a combining cedilla. */
export function keyOf(column: string | undefined): string {
  return (column ?? '').trim().toLowerCase().normalize('NFC');
}

/** The first line with text, since a spreadsheet can write rows of delimiters before the header. */
const HEADER_LINE = /[^\s,;|"][^\r\n]*/;

/** The columns that are read and that a line names. */
function namesIn(line: string, delimiter: string, options: RowOptions): string[] {
  const keys = line.split(delimiter).map(column => keyOf(column.replaceAll('"', '')));
  return readNames(options).filter(name => keys.includes(keyOf(name)));
}

/** @param start the start of a file: its header, or a line for spreadsheets such as `sep=;` */
export function delimiterOf(start: string, options: RowOptions): string {
  const line = HEADER_LINE.exec(start)?.[0] ?? '';
  const found = (delimiter: string): number => namesIn(line, delimiter, options).length;
  const best = [',', ';', '\t'].reduce((one, other) => (found(other) > found(one) ? other : one));
  return options.form.delimiter ?? /^sep=([^\w"])/i.exec(line)?.[1] ?? best;
}

/** @returns the names of the columns that are read and that a line names, as messages show them */
export function knownColumnsOf(line: string, options: RowOptions): string[] {
  return namesIn(line, delimiterOf(line, options), options).map(visible);
}

/** @throws {Failure} if the header lacks a column, or has it twice, or has ids that are made */
export function positionsIn(fileName: string, header: Fields, options: CsvOptions): Positions {
  const { ids } = options;
  const { columns = {} } = options.form;
  const keys = header.map(column => {
    const key = keyOf(column);
    return ids?.rule.kind === 'texts' && key === IGNORED_ID ? 'id' : key;
  });
  const read = readNames(options).map(keyOf);
  if (ids?.rule.ignoresIds === false && keys.includes('id'))
    throw new Failure(`${fileName} has a column id; ${OWN_IDS}`);
  const positionOf = (key: string, isTwice: boolean): number | undefined => {
    const position = keys.indexOf(key);
    if (isTwice || position !== keys.lastIndexOf(key))
      throw new Failure(`${fileName}: the column ${visible(key)} exists more than once; keep only one`);
    return position < 0 ? undefined : position;
  };
  const memberKeys: string[] = [];
  const members = MEMBERS.map(member => {
    const column = columns[member] ?? member;
    if ((member === 'tag' && column === '') || (member === 'id' && ids !== undefined)) return undefined;
    const key = keyOf(column);
    const position = positionOf(key, memberKeys.includes(key));
    memberKeys.push(key);
    if (position !== undefined) return position;
    if (member !== 'tag' || columns.tag !== undefined) throw missingColumn(fileName, header, options, column);
    const like = header[keys.findIndex(key => isLikeTag(key) && !read.includes(key))]?.trim();
    if (like === undefined) return undefined;
    throw new Failure(
      `${fileName}: the column ${quoted(like)} is not known, and there is no column tag; ` +
        `use --columns tag=${visible(like)} if it has the tags, or --columns tag= to leave it out`,
    );
  });
  const idTexts = (ids?.columns ?? []).map(column => {
    const position = positionOf(keyOf(column), false);
    if (position !== undefined) return position;
    throw missingColumn(fileName, header, options, column, ' of --id-from');
  });
  return { members, idTexts };
}

/** @param origin the option that names the column */
function missingColumn(
  fileName: string,
  header: Fields,
  options: CsvOptions,
  missing: string,
  origin = '',
): Failure {
  const { form, ids, headerHint } = options;
  const names = readNames(options).map(visible);
  if (form.columns?.tag === undefined) names.push(`optionally ${names.pop()}`);
  const listed = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
  const isIdMissing = missing === 'id' && ids === undefined;
  const advice = `rename a column, or see --columns and --delimiter in --help${isIdMissing ? '; for a list without ids, see --id-from and --number-from' : ''}`;
  const row = form.headerRow === undefined ? 'the first row' : `line ${form.headerRow}`;
  return new Failure(
    `${fileName}: the column ${visible(missing)}${origin} is missing; ${row} must name the columns ${listed}; ` +
      `it is: ${shownColumns(header)}; ${headerHint ?? advice}`,
  );
}
