import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import type { Command, Option } from 'commander';
import { Interruption, STDOUT_CLOSED_EXIT_CODE } from '../../src/cli/interruption.ts';
import { COMMANDS } from '../../src/cli/main.ts';
import { ERRORS } from '../../src/contract/errors.ts';
import {
  BODY_BYTES_MAX,
  BODY_BYTES_SETTING_MAX,
  EXIT_MS,
  HEADER_BYTES_MAX,
  RATE_LIMIT_REQUESTS_MAX,
  REQUEST_TIMEOUT_MS,
  SHUTDOWN_MS,
  TOKEN_LABEL_LENGTH_MAX,
} from '../../src/contract/limits.ts';
import { CREATE_PLANT, type Header } from '../../src/contract/openapi.ts';
import { readNewPlantText } from '../../src/contract/plant.ts';
import {
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_MS,
  LONG_BODIES_BYTES_MAX,
  SHORT_BODY_BYTES_MAX,
  STALLED_CHECK_MS,
  WAITING_CONNECTIONS_MAX,
} from '../../src/http/limits.ts';
import { COMMON_FIELDS } from '../../src/http/response.ts';
import { QUEUE_PLANTS_MAX, QUEUE_TEXT_LENGTH_MAX, QUEUE_TIME_MAX_MS } from '../../src/store/limits.ts';
import { runCommandLines } from '../harness/command-lines.ts';
import { testFolder } from '../harness/test-folder.ts';

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

/** The texts in backticks of a cell. */
function codesOf(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);
}

/** The text in backticks of a cell that has nothing else; otherwise an empty text. */
function wholeCode(cell: string): string {
  return /^`([^`]+)`$/.exec(cell)?.[1] ?? '';
}

interface Leaf {
  /** The command with the names of those above it, such as `token create`. */
  path: string;
  command: Command;
}

async function leaves(): Promise<Leaf[]> {
  const commands = await Promise.all(Object.values(COMMANDS).map(load => load()));
  return commands.flatMap(command =>
    command.commands.length === 0
      ? [{ path: command.name(), command }]
      : command.commands.map(each => ({ path: `${command.name()} ${each.name()}`, command: each })),
  );
}

/** The default as a user writes it; an empty text where the code has none. */
function defaultOf({ defaultValue, defaultValueDescription }: Option): string {
  return defaultValue === undefined ? '' : String(defaultValueDescription ?? defaultValue);
}

function seconds(milliseconds: number): string {
  return `${milliseconds / 1_000} s`;
}

function kibibytes(bytes: number): string {
  return `${bytes / 1_024} KiB`;
}

function mebibytes(bytes: number): string {
  return `${bytes / 1_024 ** 2} MiB`;
}

suite('docs/reference.md', () => {
  test('lists every command with its arguments, and no other', async () => {
    const commands = (await leaves()).map(({ path, command }) =>
      [
        path,
        ...command.registeredArguments.map(each => `<${each.name()}${each.variadic ? '...' : ''}>`),
      ].join(' '),
    );
    assert.deepEqual(
      tableOf('Command', 'What it does').flatMap(([command]) => codesOf(command!)),
      commands,
    );
  });

  test('lists every setting with its environment variable and default, and no other', async () => {
    const commands = await leaves();
    const listed = tableOf('Command', 'Flag').flatMap(([names, flag, variable, initial]) =>
      codesOf(names!)
        .flatMap(name => commands.filter(({ path }) => path === name || path.startsWith(`${name} `)))
        .map(({ path }) => [path, codesOf(flag!), codesOf(variable!), wholeCode(initial!)].join(' ')),
    );
    const options = commands.flatMap(({ path, command }) =>
      command.options.map(option => [path, option.long, option.envVar, defaultOf(option)].join(' ')),
    );
    assert.deepEqual(listed.toSorted(), options.toSorted());
  });

  test('names every choice of a setting', async () => {
    const rows = tableOf('Command', 'Flag');
    for (const { path, command } of await leaves())
      for (const { long, argChoices = [] } of command.options) {
        const row = rows.find(([names, flag]) => codesOf(names!).includes(path) && flag === `\`${long}\``);
        const named = codesOf(row?.at(-1) ?? '');
        assert.deepEqual(
          argChoices.filter(value => !named.includes(value)),
          [],
          `${path} ${long}`,
        );
      }
  });

  test('lists every error with its status and whether to retry, and no other', () => {
    const catalogue = Object.values(ERRORS).map(({ status, number, retry }) => [
      String(status),
      String(number),
      retry ? 'yes' : 'no',
    ]);
    assert.deepEqual(
      tableOf('Status').map(row => row.slice(0, 3)),
      catalogue,
    );
  });

  test('lists every response header with its statuses, and no other', () => {
    const responses = Object.entries(CREATE_PLANT.responses) as [
      string,
      { headers: Record<string, Header> },
    ][];
    const statuses = new Map<string, string[]>();
    for (const [status, { headers }] of responses)
      for (const name of Object.keys(headers)) statuses.set(name, [...(statuses.get(name) ?? []), status]);
    const described = [...statuses].map(([name, on]) => [
      name,
      on.length === responses.length - 1 && !on.includes('200') ? 'all errors' : on.join(', '),
    ]);
    const common = COMMON_FIELDS.filter((_, index) => index % 2 === 0).map(name => [name, 'all']);
    assert.deepEqual(
      tableOf('Header')
        .map(([name, on]) => [codesOf(name!)[0], on])
        .toSorted(),
      [...described, ...common].toSorted(),
    );
  });

  test('gives examples of members that are accepted and rejected', () => {
    const plant: Record<string, string> = { id: '1', name: '"A"', tag: '"B"' };
    for (const [member, , required, accepted, rejected] of tableOf('Member')) {
      const name = codesOf(member!)[0]!;
      const bodyWith = (value: string | undefined): string =>
        `{${Object.entries({ ...plant, [name]: value })
          .filter(([, text]) => text !== undefined)
          .map(([key, text]) => `"${key}":${text}`)
          .join()}}`;
      for (const value of codesOf(accepted!)) assert.ok(readNewPlantText(bodyWith(value)).plant, value);
      for (const value of codesOf(rejected!))
        assert.equal(readNewPlantText(bodyWith(value)).error, 'notNewPlant', value);
      assert.equal(readNewPlantText(bodyWith(undefined)).plant === undefined, required === 'yes', name);
    }
  });

  test('lists limits as the code has them', () => {
    const long = kibibytes(SHORT_BODY_BYTES_MAX);
    const perToken = RATE_LIMIT_REQUESTS_MAX.toLocaleString('en');
    assert.deepEqual(
      tableOf('What').map(row => row.slice(0, 2)),
      [
        [
          'request body',
          `${mebibytes(BODY_BYTES_MAX)}, or \`--body-limit\` up to ${mebibytes(BODY_BYTES_SETTING_MAX)}`,
        ],
        ['request line and headers together', kibibytes(HEADER_BYTES_MAX)],
        ['time to send the headers', seconds(HEADERS_TIMEOUT_MS)],
        ['time to send the complete request', seconds(REQUEST_TIMEOUT_MS)],
        [
          'time in which a response is ready but the client does not read any of it',
          seconds(3 * STALLED_CHECK_MS),
        ],
        ['time without a request on an open connection', seconds(KEEP_ALIVE_MS)],
        [
          'connections to an address that wait while the service starts',
          WAITING_CONNECTIONS_MAX.toLocaleString('en'),
        ],
        [`bodies over ${long} whose responses are not sent yet, together`, mebibytes(LONG_BODIES_BYTES_MAX)],
        ['plants that wait for a commit', QUEUE_PLANTS_MAX.toLocaleString('en')],
        ['text of the plants that wait for a commit', mebibytes(QUEUE_TEXT_LENGTH_MAX)],
        ['expected time until the commit of a plant', seconds(QUEUE_TIME_MAX_MS)],
        ['requests of one token', `none, or \`--rate-limit\` up to ${perToken} per second or minute`],
        ['length of a token label', `${TOKEN_LABEL_LENGTH_MAX} characters`],
        ['time from SIGTERM until all requests have a response', seconds(SHUTDOWN_MS)],
        ['time from SIGTERM until the process ends', seconds(EXIT_MS)],
      ],
    );
  });

  test('lists the exit codes', async () => {
    const finished = await runCommandLines(
      ['openapi', 'show 1', 'show'].map(line => ({ args: line.split(' ') })),
      testFolder(),
    );
    const codes = finished.map(({ exitCode }) => exitCode);
    const stopped = (['SIGINT', 'SIGTERM'] as const).map(signal => new Interruption(signal, '').exitCode);
    assert.deepEqual(
      tableOf('Code').map(([code]) => Number(code)),
      [...codes, stopped[0], STDOUT_CLOSED_EXIT_CODE, stopped[1]],
    );
  });
});
