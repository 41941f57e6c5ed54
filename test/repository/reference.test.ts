import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ERRORS } from '../../src/core/contract/errors.ts';
import { COMMANDS } from '../../src/main.ts';

const DOCUMENT = readFileSync(new URL('../../docs/reference.md', import.meta.url), 'utf8');

/** The rows of the table that has these first headers, as their cells. */
function tableOf(...firstHeaders: string[]): string[][] {
  const table = DOCUMENT.split('\n\n').find(each => each.startsWith(`| ${firstHeaders.join(' | ')} |`));
  assert.ok(table !== undefined, firstHeaders.join());
  const [, , ...rows] = table.trimEnd().split('\n');
  return rows.map(row =>
    row
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim()),
  );
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
  const listed = tableOf('Command', 'What it does').flatMap(([command]) => codesOf(command!));
  assert.deepEqual(listed, commands);
});

test('docs/reference.md lists every setting with its environment variable and default, and no other', async () => {
  const commands = await namedCommands();
  const listed = tableOf('Command', 'Flag').flatMap(([names, flag, variable, initial]) =>
    codesOf(names!)
      .flatMap(each => {
        const exact = commands.filter(([name]) => name === each);
        return exact.length > 0 ? exact : commands.filter(([name]) => name.startsWith(`${each} `));
      })
      // A default is the only text of its cell.
      .map(([name]) =>
        [name, codesOf(flag!), codesOf(variable!), /^`([^`]+)`$/.exec(initial!)?.[1]].join(' '),
      ),
  );
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
  const listed = tableOf('Status').map(row => row.slice(0, 3).join());
  assert.deepEqual(listed, catalogue);
});

test('the number of an error begins with its status', () => {
  for (const { status, number } of Object.values(ERRORS)) assert.equal(Math.trunc(number / 100), status);
});
