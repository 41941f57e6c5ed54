import type { ErrorBody } from '../../../src/core/contract/errors.ts';
import type { NewPlantReading } from '../../../src/core/contract/plant.ts';
import { quoted, SHOWN_LENGTH_MAX, visible } from '../../../src/formats/visible-text.ts';
import type { IdMaker, MadeId } from './id-maker.ts';

/** Longest CSV row (bytes) and JSON value (UTF-16 code units); a longer one ends the import. */
export const ROW_LENGTH_MAX = 64 * 1024 * 1024;

/** The message after the name of a file without text. */
export const EMPTY = 'is empty: it contains no plant';

/** The members of a plant. */
export const MEMBERS = ['id', 'name', 'tag'] as const;

/** Names of the columns or members, if they differ. An empty `id` or `tag`: none. */
export type ColumnNames = Partial<Record<(typeof MEMBERS)[number], string>>;

/** What options say of the form of the files. */
export interface FileForm {
  columns?: ColumnNames | undefined;
  /** As TextDecoder names it; undefined: UTF-8, or as a byte order mark says. */
  encoding?: string | undefined;
  /** Of CSV. Undefined: comma, semicolon or tab, as the header shows. */
  delimiter?: string | undefined;
  /** `off`: quotes of CSV are text. Undefined: on, but the lines of a tab-separated file decide. */
  quotes?: 'on' | 'off' | undefined;
  /** Number of the line with the header of CSV; undefined: the first line with text. */
  headerRow?: number | undefined;
}

/** How rows are made of the text of a file. */
export interface RowOptions {
  form: FileForm;
  /** Makes the ids; undefined if the file has them. */
  ids?: IdMaker | undefined;
}

/** The names of all columns or members that are read. A name can be one of those that make ids. */
export function readNames({ form: { columns = {} }, ids }: RowOptions): string[] {
  const names = MEMBERS.map(member => columns[member] ?? member);
  const all = new Set([...(ids?.columns ?? names.slice(0, 1)), ...names.slice(1)]);
  return [...all].filter(name => name !== '');
}

export function shownColumns(names: readonly (string | undefined)[]): string {
  const line = visible(names.map(name => JSON.stringify(name ?? '')).join(', '));
  return line.length > SHOWN_LENGTH_MAX ? `${line.slice(0, SHOWN_LENGTH_MAX)}…` : line;
}

const LINE_BREAK = /[\r\n]/;

/**
 * Makes a text such as `"name" is "two\nlines"` of the first field with a line break.
 *
 * @returns undefined if no field has one
 */
export function lineBreakIn(
  names: readonly (string | undefined)[],
  fields: readonly (string | undefined)[],
): string | undefined {
  const index = fields.findIndex(field => LINE_BREAK.test(field ?? ''));
  return index < 0 ? undefined : `${quoted(names[index] ?? '')} is ${quoted(fields[index]!)}`;
}

/** The format of a rejects file. JSON Lines have no header. */
export interface RejectsFormat {
  extension: 'csv' | 'jsonl';
  header: string;
}

/** A row of an input file, with its plant or the reason why it has none. */
export interface PlantRow {
  /** Number of the CSV data row, JSON line or array element, counted from 1. */
  readonly number: number;
  /** Where a person finds the row, such as `line 4 (row 3)`. */
  place(): string;
  /** The first field with a line break, for a message. If its quote is unclosed, it contains the next rows. */
  readonly lineBreak: string | undefined;
  /** The plant of the row, or the reason why it has none. */
  readonly reading: NewPlantReading;
  /** The id that was made for the row; undefined if the file has ids. */
  readonly madeId: MadeId | undefined;
  /** The format of the input, which its rejects file has, too. */
  readonly rejectsFormat: RejectsFormat;
  /** The row as a line of the rejects file: its exact text and the reason. */
  rejectsLine(fault: ErrorBody): string;
}

/** Rows in file order. Each batch contains the rows of one chunk of the file. */
export type PlantRows = AsyncGenerator<PlantRow[], void, undefined>;

export const SAFE_TO_REPEAT = 'you can safely run the import again';

/** The message about a row that is too long. @param delimiter may be unclosed in the row */
export function tooLong(delimiter: string): string {
  return `is longer than ${ROW_LENGTH_MAX / 1024 / 1024} MiB; check it for an unclosed ${delimiter}`;
}
