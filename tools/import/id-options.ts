import { type Command, InvalidArgumentError, Option } from 'commander';
import { Failure } from '../../src/cli/shared/failure.ts';
import { parseId } from '../../src/cli/shared/id-argument.ts';
import { checkNewFile } from '../../src/cli/shared/new-file.ts';
import type { CsvForm } from './csv/csv-header.ts';
import type { IdRule } from './rows/id-maker.ts';

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
}: IdOptions & CsvForm): IdRule | undefined {
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
export function rejectsOptions(rule: IdRule | undefined, { columns = {} }: CsvForm): string[] {
  if (rule?.kind !== 'texts') return [];
  const named = Object.entries(columns).map(([member, column]) => `${member}=${column}`);
  return ['--id-from', rule.columns.join(), ...(named.length > 0 ? ['--columns', named.join()] : [])];
}
