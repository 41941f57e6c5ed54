import { type Command, InvalidArgumentError, Option } from 'commander';
import { countUpTo } from '../../src/cli/shared/setting.ts';
import type { CsvForm } from './csv/csv-header.ts';
import { type ColumnNames, MEMBERS } from './rows/plant-row.ts';

const HEADER_ROW_MAX = 1_000_000;

/** The options about the form of the files. */
export interface FormOptions extends CsvForm {
  encoding?: string;
}

export function addFormOptions(command: Command): Command {
  return command
    .option(
      '--columns <LIST>',
      'columns of CSV or members of JSON, such as id=ACCESSION; tag= for no tag, id= to ignore ids',
      parseColumns,
    )
    .option('--delimiter <CHAR>', 'delimiter of CSV (default: comma, semicolon or tab)', parseDelimiter)
    .addOption(
      new Option(
        '--quotes <on|off>',
        'whether quotes enclose fields of CSV; off: they are text (default: on; with tabs, off if a line does not close a quote)',
      ).choices(['on', 'off']),
    )
    .option(
      '--header-row <N>',
      'line of the header of CSV, if it has title rows above it (default: the first line with text)',
      countUpTo(HEADER_ROW_MAX),
    )
    .option(
      '--encoding <NAME>',
      'encoding of the files, such as windows-1250 (default: UTF-8, or as a byte order mark says)',
      parseEncoding,
    );
}

function parseColumns(text: string): CsvForm['columns'] {
  const given = text.split(/,(?=(?:id|name|tag)=)/).map(each => /^(id|name|tag)=(.*)$/.exec(each));
  if (given.includes(null))
    throw new InvalidArgumentError(
      'Write MEMBER=COLUMN for id, name or tag, such as id=ACCESSION,name=Taxon.',
    );
  const columns: ColumnNames = Object.fromEntries(given.map(match => match!.slice(1)));
  const names = MEMBERS.map(member => columns[member] ?? member).filter(name => name !== '');
  if (new Set(names).size === names.length) return columns;
  throw new InvalidArgumentError('Name different columns for id, name and tag.');
}

function parseDelimiter(text: string): string {
  if (/^(?:tab|[^"\r\n])$/u.test(text)) return text.replace('tab', '\t');
  throw new InvalidArgumentError('Give one character, or the word tab.');
}

/** @returns the name of the encoding by the Encoding Standard, section 4.2 */
function parseEncoding(text: string): string {
  try {
    return new TextDecoder(text.replace(/^latin-/i, 'latin')).encoding;
  } catch {
    throw new InvalidArgumentError(
      'Give a name of the Encoding Standard (https://encoding.spec.whatwg.org/#names-and-labels), such as windows-1252 or utf-16le.',
    );
  }
}
