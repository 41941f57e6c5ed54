import { type Command, InvalidArgumentError, Option } from 'commander';
import { Failure } from '../../src/cli/shared/failure.ts';
import { parseId } from '../../src/cli/shared/id-argument.ts';
import { checkNewFile } from '../../src/cli/shared/new-file.ts';
import { countUpTo } from '../../src/cli/shared/setting.ts';
import type { IdRule } from './rows/id-maker.ts';
import { type ColumnNames, type FileForm, MEMBERS } from './rows/plant-row.ts';

const HEADER_ROW_MAX = 1_000_000;

/** Adds the options of {@link FileForm}. */
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

function parseColumns(text: string): ColumnNames {
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

/** The options about ids that import makes. */
export interface IdOptions {
  idFrom?: string[];
  numberFrom?: bigint;
  idsFile?: string;
}

export function addIdOptions(command: Command): Command {
  return command
    .option(
      '--id-from <COLUMNS>',
      'make each id of the texts of these columns, separated by commas',
      parseIdColumns,
    )
    .addOption(
      new Option('--number-from <N>', 'number the rows from N, in file order; needs --ids-file')
        .argParser(parseId)
        .conflicts('idFrom'),
    )
    .option('--ids-file <FILE>', 'new CSV file for the ids that --id-from or --number-from makes');
}

function parseIdColumns(text: string): string[] {
  const columns = text.split(',').map(column => column.trim());
  if (!columns.includes('') && new Set(columns).size === columns.length) return columns;
  throw new InvalidArgumentError('Write names of columns, each once, such as ACCESSION or plot,tree.');
}

/**
 * @returns undefined if the files have ids
 * @throws {Failure} if the options do not fit together, or the file for the ids exists
 */
export function idRuleOf({
  idFrom,
  numberFrom,
  idsFile,
  columns = {},
}: IdOptions & FileForm): IdRule | undefined {
  if (idsFile !== undefined) checkNewFile(idsFile);
  const makesIds = idFrom !== undefined || numberFrom !== undefined;
  if (idsFile !== undefined && !makesIds)
    throw new Failure(
      '--ids-file needs --id-from or --number-from; without these, the files have the ids',
      2,
    );
  if (columns.id === '' && !makesIds)
    throw new Failure('--columns id= ignores the ids of the file; give --id-from or --number-from, too', 2);
  if (columns.id && makesIds)
    throw new Failure('--columns id=COLUMN says where ids are, so omit --id-from and --number-from', 2);
  const ignoresIds = columns.id === '';
  if (idFrom !== undefined) return { kind: 'texts', columns: idFrom, ignoresIds };
  if (numberFrom === undefined) return undefined;
  if (idsFile === undefined)
    throw new Failure('--number-from needs --ids-file, so that the next list can keep the numbers', 2);
  return { kind: 'numbers', first: numberFrom, ignoresIds };
}

/** The options with which the rejects files are imported. Numbered rows have their ids there. */
export function rejectsOptions(rule: IdRule | undefined, { columns = {} }: FileForm): string[] {
  if (rule?.kind !== 'texts') return [];
  const named = Object.entries(columns).map(([member, column]) => `${member}=${column}`);
  return ['--id-from', rule.columns.join(), ...(named.length > 0 ? ['--columns', named.join()] : [])];
}
