import { Failure } from '../../../src/cli/shared/failure.ts';
import { hidesFields } from '../rejects/rejects-format.ts';
import { EMPTY, type PlantRow, type PlantRows, ROW_LENGTH_MAX, tooLong } from '../rows/plant-row.ts';
import { Columns } from './csv-columns.ts';
import { type CsvOptions, delimiterOf } from './csv-header.ts';
import { type CsvRecord, CsvRecords, type Fields, type RecordsRead } from './csv-records.ts';
import { partsByQuotes, type TextPart } from './unclosed-quotes.ts';

/**
 * Reads the rows of a CSV file. Rows without text, such as `,,`, are skipped and not counted.
 *
 * @param start the start of the text, at least through the first line with text
 * @throws {Failure} if the header has a fault, or after the rows before a row that is too long
 */
export async function* csvRows(
  name: string,
  texts: AsyncIterable<string>,
  start: string,
  options: CsvOptions,
): PlantRows {
  const { form, onNote, line = 1, headerHint } = options;
  const delimiter = delimiterOf(start, options);
  /** Many tab-separated files contain quotes as text, so the lines decide. */
  const isUndecided = delimiter === '\t' && form.quotes === undefined;
  const elseOff = isUndecided ? ELSE_OFF : '';
  const headerAdvice = headerHint === undefined ? elseOff : `; ${headerHint}`;
  let columns: Columns | undefined;
  let rowCount = 0;
  /** The line of the first field in quotes. */
  let quotedLine: number | undefined;
  let isMisplacedNoted = false;
  const rowOf = (record: CsvRecord): PlantRow | undefined => {
    const { fields, line: recordLine, fault } = record;
    if (record.hasQuotedField) quotedLine ??= recordLine;
    if (fault === undefined && isBlank(fields)) return undefined;
    if (columns === undefined) {
      if (fault !== undefined) throw new Failure(`${name}, first row: ${fault.message}${headerAdvice}`);
      if (!fields[0]?.startsWith('sep=')) columns = new Columns(name, fields, options);
      return undefined;
    }
    const isMisplaced = fault !== undefined && hidesFields(fault.code);
    if (isMisplaced && isUndecided && !columns.isRejectsFile && !isMisplacedNoted) {
      isMisplacedNoted = true;
      onNote(`${name}: line ${recordLine} has a misplaced quote${ELSE_OFF}`);
    }
    return columns.row(++rowCount, record);
  };
  const failure = (fault: string): Failure => {
    const place = columns === undefined ? 'the first row' : `line ${reader.line} (row ${rowCount + 1})`;
    return new Failure(`${name}: ${place} ${fault}`);
  };
  function* rowsOf({ records, fault }: RecordsRead): Generator<PlantRow[]> {
    const rows = records.map(rowOf).filter(row => row !== undefined);
    if (rows.length > 0 || fault === undefined) yield rows;
    if (fault !== undefined) throw failure(fault);
  }

  const { encoding } = form;
  let areQuotesText = form.quotes === 'off';
  let reader = new CsvRecords({ delimiter, areQuotesText, encoding }, line);
  try {
    for await (const part of isUndecided ? partsByQuotes(texts) : partsOf(texts, areQuotesText)) {
      if (part.kind === 'long line') {
        yield* rowsOf(await reader.end());
        throw failure(tooLong('quote'));
      }
      if (part.areQuotesText && !areQuotesText) {
        areQuotesText = true;
        yield* rowsOf(await reader.end());
        const place = `${name}: line ${reader.line}`;
        if (quotedLine !== undefined) throw new Failure(mixedQuotes(place, quotedLine));
        onNote(
          `${place} has a quote that its line does not close, so quotes are text in this file${ELSE_ON}`,
        );
        reader = new CsvRecords({ delimiter, areQuotesText, encoding }, reader.line);
      }
      yield* rowsOf(await reader.write(part.text));
      if (reader.restBytes > ROW_LENGTH_MAX) throw failure(`${tooLong('quote')}${reader.openQuote()}`);
    }
    yield* rowsOf(await reader.end());
    // The file contains only delimiters, or only `sep=;`.
    if (columns === undefined) throw new Failure(`${name} ${EMPTY}`);
  } finally {
    reader[Symbol.dispose]();
  }
}

const ELSE_OFF = '; if quotes are text in this file, use --quotes off';
const ELSE_ON = '; if quotes enclose fields with line breaks, use --quotes on';

function mixedQuotes(place: string, quotedLine: number): string {
  return (
    `${place} has a quote that its line does not close, but line ${quotedLine} has a field in quotes; ` +
    'use --quotes off if quotes are text in this file, or --quotes on if they enclose fields'
  );
}

async function* partsOf(texts: AsyncIterable<string>, areQuotesText: boolean): AsyncGenerator<TextPart> {
  for await (const text of texts) yield { kind: 'text', text, areQuotesText };
}

function isBlank(fields: Fields): boolean {
  return fields.every(field => field === undefined || field.trim() === '');
}
