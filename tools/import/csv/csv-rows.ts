import { Failure } from '../../../src/cli/shared/failure.ts';
import { hidesFields } from '../rejects/rejects-format.ts';
import { EMPTY, type PlantRow, type PlantRows, ROW_LENGTH_MAX, tooLong } from '../rows/plant-row.ts';
import { Columns } from './csv-columns.ts';
import { type CsvOptions, delimiterOf } from './csv-header.ts';
import { type CsvRecord, CsvRecords, type Fields, type RecordListener } from './csv-records.ts';
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
  let rows: PlantRow[] = [];
  let rowCount = 0;
  /** The line of the first field in quotes. */
  let quotedLine: number | undefined;
  let isMisplacedNoted = false;
  const onRecord = (record: CsvRecord): void => {
    if (record.hasQuotedField) quotedLine ??= record.line;
    if (record.fault === undefined && isBlank(record.fields)) return;
    if (columns !== undefined) {
      rows.push(columns.row(++rowCount, record));
      const isMisplaced = record.fault !== undefined && hidesFields(record.fault.code);
      if (!isMisplaced || !isUndecided || columns.isRejectsFile || isMisplacedNoted) return;
      isMisplacedNoted = true;
      onNote(`${name}: line ${record.line} has a misplaced quote${ELSE_OFF}`);
    } else if (record.fault !== undefined)
      throw new Failure(`${name}, first row: ${record.fault.message}${headerAdvice}`);
    else if (!record.fields[0]?.startsWith('sep=')) columns = new Columns(name, record.fields, options);
  };
  const failure = (fault: string): Failure => {
    const place = columns === undefined ? 'the first row' : `line ${records.line} (row ${rowCount + 1})`;
    return new Failure(`${name}: ${place} ${fault}`);
  };
  const listener: RecordListener = { onRecord, failure };
  let areQuotesText = form.quotes === 'off';
  let records = new CsvRecords({ delimiter, areQuotesText, encoding: form.encoding }, line, listener);
  function* rowsUntil(error: Error | undefined): Generator<PlantRow[]> {
    if (rows.length > 0 || error === undefined) yield rows;
    rows = [];
    if (error !== undefined) throw error;
  }

  try {
    for await (const part of isUndecided ? partsByQuotes(texts) : partsOf(texts, areQuotesText)) {
      if (part.kind === 'long line') {
        yield* rowsUntil(await records.end());
        throw failure(tooLong('quote'));
      }
      if (part.areQuotesText && !areQuotesText) {
        areQuotesText = true;
        yield* rowsUntil(await records.end());
        const place = `${name}: line ${records.line}`;
        if (quotedLine !== undefined) throw new Failure(mixedQuotes(place, quotedLine));
        onNote(
          `${place} has a quote that its line does not close, so quotes are text in this file${ELSE_ON}`,
        );
        records = new CsvRecords(
          { delimiter, areQuotesText, encoding: form.encoding },
          records.line,
          listener,
        );
      }
      yield* rowsUntil(await records.write(part.text));
      if (records.restBytes > ROW_LENGTH_MAX) throw failure(`${tooLong('quote')}${records.openQuote()}`);
    }
    const error = await records.end();
    // The file contains only delimiters, or only `sep=;`.
    yield* rowsUntil(error ?? (columns === undefined ? new Failure(`${name} ${EMPTY}`) : undefined));
  } finally {
    records[Symbol.dispose]();
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
