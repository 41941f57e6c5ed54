import { Command, InvalidArgumentError } from 'commander';
import type { StoredToken } from '../core/tokens/stored-token.ts';
import { hashToken, makeToken } from '../core/tokens/token.ts';
import { shownDatabase } from '../engines/openers/database-url.ts';
import { inExistingStore, openerOf } from '../engines/openers/open-store.ts';
import { schemaUpdateOf } from '../engines/storage-engine.ts';
import { alignedColumns } from '../formats/aligned-columns.ts';
import { isTokenLabel, TOKEN_LABEL_LENGTH_MAX } from '../formats/token-label.ts';
import type { Extra } from './extra.ts';
import { addDatabaseOptions, type DatabaseOptions, readDatabase } from './shared/database-option.ts';
import { Failure } from './shared/failure.ts';

/** @param extras may add options for a new token */
export function tokenCommand(extras: readonly Extra[]): Command {
  const newTokens = extras.flatMap(({ newToken }) => newToken ?? []);
  const createCommand = addDatabaseOptions(new Command('create'))
    .description(
      'create a token and print it to stdout; the token cannot be shown again, because the store contains only its hash',
    )
    .argument('<label>', 'unique name of the token, such as the name of the client', parseLabel)
    .option(
      '--expires <duration>',
      'lifetime, such as 90d, 12h or 30m (default: never expires)',
      parseDurationMs,
    )
    .action((label, options) => create(label, options, newTokens));
  for (const option of newTokens.flatMap(({ options }) => options())) createCommand.addOption(option);
  return new Command('token')
    .description('create, list and revoke bearer tokens, also while the service runs')
    .addCommand(createCommand)
    .addCommand(
      addDatabaseOptions(new Command('list'))
        .description('list the label, times and state of each token, without the token itself')
        .option('--json', 'print JSON Lines')
        .action(list),
    )
    .addCommand(
      addDatabaseOptions(new Command('revoke'))
        .description('revoke a token permanently; the service rejects it within 5 seconds')
        .argument('<label>', 'the label of the token')
        .action(revoke),
    );
}

async function create(
  label: string,
  options: DatabaseOptions & { expires?: number },
  newTokens: readonly NonNullable<Extra['newToken']>[],
): Promise<void> {
  const database = readDatabase(options);
  const token = makeToken();
  const createdAt = Date.now();
  const expiresAt = options.expires === undefined ? null : createdAt + options.expires;
  for (const { apply } of newTokens) await apply(options, hashToken(token));
  const store = await openerOf(database).openForCommand('create');
  if (store.schemaSteps.before === 0) console.error(`created a new store at ${shownDatabase(database)}`);
  const schemaUpdate = schemaUpdateOf(store.schemaSteps);
  if (schemaUpdate !== undefined) console.error(schemaUpdate);
  const stored = await store.tokenTable
    .createToken({ hash: hashToken(token), label, createdAt, expiresAt })
    .finally(() => store.close());
  if (stored === undefined)
    throw new Failure(`a token with the label ${JSON.stringify(label)} already exists; choose another label`);
  console.error(`created token ${JSON.stringify(label)} in ${shownDatabase(database)}`);
  console.log(token);
}

async function list(options: DatabaseOptions & { json?: true }): Promise<void> {
  await using reader = await openerOf(readDatabase(options)).openReader();
  const tokens = await reader.tokens();
  if (options.json) return void process.stdout.write(tokens.map(tokenJson).join(''));
  const table = [
    ['LABEL', 'CREATED', 'EXPIRES', 'STATE', 'LAST USED'],
    ...tokens.map(token => [
      token.label,
      timeText(token.createdAt),
      token.expiresAt === null ? 'never' : timeText(token.expiresAt),
      state(token),
      token.lastUsedDay ?? '-',
    ]),
  ];
  console.log(alignedColumns(table.map(row => row.join('\t')).join('\n')));
}

async function revoke(label: string, options: DatabaseOptions): Promise<void> {
  const database = readDatabase(options);
  const token = await inExistingStore(database, ({ tokenTable }) =>
    tokenTable.revokeToken(label, Date.now()),
  );
  if (token === undefined)
    throw new Failure(
      `there is no token with the label ${JSON.stringify(label)} in ${shownDatabase(database)}; list the labels with: npx plant-store token list`,
    );
  console.error(
    `revoked token ${JSON.stringify(label)} in ${shownDatabase(database)}; a running service rejects it within 5 seconds`,
  );
}

function tokenJson(token: StoredToken): string {
  const { label, createdAt, expiresAt, revokedAt, lastUsedDay: last_used } = token;
  const [created, expires, revoked] = [createdAt, expiresAt, revokedAt].map(ms =>
    ms === null ? null : timeText(ms),
  );
  const valid = state(token) === 'valid';
  return `${JSON.stringify({ label, valid, created, expires, revoked, last_used })}\n`;
}

function state({ revokedAt, expiresAt }: StoredToken): string {
  if (revokedAt !== null) return `revoked ${timeText(revokedAt)}`;
  return expiresAt !== null && expiresAt <= Date.now() ? 'expired' : 'valid';
}

/** The time in ISO 8601, or the number as it is if it is beyond the times of a Date. */
function timeText(timeMs: number): string {
  return new Date(timeMs).toJSON() ?? String(timeMs);
}

function parseLabel(text: string): string {
  if (!isTokenLabel(text))
    throw new InvalidArgumentError(
      `Give 1 to ${TOKEN_LABEL_LENGTH_MAX} characters in UTF-8, without invisible characters and without blanks at the ends.`,
    );
  return text;
}

const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

function parseDurationMs(text: string): number {
  const [, count, unit] = /^([1-9][0-9]{0,5})([mhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined)
    throw new InvalidArgumentError('Give a whole number of days, hours or minutes, such as 90d, 12h or 30m.');
  return Number(count) * UNIT_MS[unit]!;
}
