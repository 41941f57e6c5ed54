import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ERRORS } from '../../src/core/contract/errors.ts';
import { COMMANDS } from '../../src/main.ts';

const DOCUMENT = readFileSync(new URL('../../docs/reference.md', import.meta.url), 'utf8');

/** A table, as a record of cells by header for each row. */
type Table = Record<string, string>[];

function isTable(block: string): boolean {
  return block.startsWith('| ');
}

function readTable(block: string): Table {
  const [headers, , ...rows] = block.trimEnd().split('\n').map(cellsOf);
  return rows.map(row => {
    assert.equal(row.length, headers!.length, row.join(' | '));
    return Object.fromEntries(headers!.map((header, index) => [header, row[index]!]));
  });
}

function cellsOf(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map(cell => cell.trim());
}

/** The table that has these first headers. */
function tableOf(...firstHeaders: string[]): Table {
  const table = DOCUMENT.split('\n\n').find(each => each.startsWith(`| ${firstHeaders.join(' | ')} |`));
  assert.ok(table !== undefined, firstHeaders.join());
  return readTable(table);
}

/**
 * The rows of all tables of the section of settings, each with its commands. They are in the
 * paragraph before the table, or in the column "Command", where an empty cell repeats the one above.
 */
function settingRows(): { commands: string; row: Table[number] }[] {
  const [, section] = /^## Settings\n(.*?)^## /ms.exec(DOCUMENT)!;
  const blocks = section!.split('\n\n');
  return blocks.flatMap((block, index) => {
    if (!isTable(block)) return [];
    let commands = blocks[index - 1]!;
    return readTable(block).map(row => {
      if (row.Command !== undefined && row.Command !== '') commands = row.Command;
      return { commands, row };
    });
  });
}

function codesOf(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);
}

type Command = Awaited<ReturnType<(typeof COMMANDS)[string]>>;

/** The commands with their names, such as `token create`. */
async function namedCommands(): Promise<[name: string, command: Command][]> {
  const commands = await Promise.all(Object.values(COMMANDS).map(load => load()));
  const named = commands.flatMap((command): [string, Command][] => [
    [command.name(), command],
    ...command.commands.map((each): [string, Command] => [`${command.name()} ${each.name()}`, each]),
  ]);
  // Without an option, a command with subcommands does nothing by itself.
  return named.filter(([, command]) => command.options.length > 0 || command.commands.length === 0);
}

test('docs/reference.md lists every command with its arguments, and no other', async () => {
  const commands = (await namedCommands()).map(([name, { registeredArguments }]) =>
    [name, ...registeredArguments.map(each => `<${each.name()}${each.variadic ? '...' : ''}>`)].join(' '),
  );
  const listed = tableOf('Command', 'What it does').flatMap(row => codesOf(row.Command!));
  assert.deepEqual(listed, commands);
});

test('docs/reference.md lists every setting with its environment variable and default, and no other', async () => {
  const commands = await namedCommands();
  /** A text that names no command stays, so that the comparison finds it. */
  const commandsNamed = (text: string): string[] => {
    const names = commands.map(([name]) => name);
    if (names.includes(text)) return [text];
    const subcommands = names.filter(name => name.startsWith(`${text} `));
    return subcommands.length > 0 ? subcommands : [text];
  };
  const listed = settingRows().flatMap(({ commands: named, row }) => {
    // A default is the only text of its cell.
    const [, initial] = /^`([^`]+)`$/.exec(row.Default!) ?? [];
    const setting = [codesOf(row.Flag!), codesOf(row['Environment variable']!), initial];
    const names = codesOf(named).flatMap(commandsNamed);
    assert.ok(names.length > 0, `${row.Flag} has no command`);
    return names.map(name => [name, ...setting].join(' '));
  });
  const options = commands.flatMap(([name, command]) =>
    command.options.map(({ long, envVar, defaultValue, defaultValueDescription }) =>
      [name, long, envVar, defaultValueDescription ?? defaultValue].join(' '),
    ),
  );
  assert.deepEqual(listed.toSorted(), options.toSorted());
});

test('docs/reference.md lists every error with its status and whether to retry, and no other', () => {
  const catalogue = Object.values(ERRORS).map(({ status, number, retry }) =>
    [status, number, retry ? 'yes' : 'no'].join(),
  );
  const listed = tableOf('Status').map(row => [row.Status, row.Error, row.Retry].join());
  assert.deepEqual(listed, catalogue);
});

test('the number of an error begins with its status', () => {
  for (const { status, number } of Object.values(ERRORS)) assert.equal(Math.trunc(number / 100), status);
});
