import { Command, InvalidArgumentError, Option } from 'commander';
import { Failure } from '../../src/cli/shared/failure.ts';
import { stoppable } from '../../src/cli/shared/interruption.ts';
import { addTokenOptions, readBaseUrl, readToken } from '../../src/cli/shared/service-options.ts';
import { plantsUrl } from '../../src/client/transport.ts';
import { isInt64 } from '../../src/core/contract/int64.ts';
import { checkRules } from './check-run.ts';
import { drawIds, type IdRange, shownIds } from './ids.ts';
import { jsonReport, textReport } from './report.ts';
import { RULES } from './rules.ts';

const FORMATS = { text: textReport, json: jsonReport };

const HELP = `
The exit code is 1 if a MUST rule does not hold. The check stores plants, which
nobody can delete, so it needs --ids or --yes.

Examples:
  $ npx plant-store check https://plants.example/v1 --yes --token-file token.txt
  $ npx plant-store check http://127.0.0.1:8080 --ids 9000000000000000000..9000000000000999999`;

interface CheckOptions {
  format: keyof typeof FORMATS;
  ids?: IdRange;
  yes?: true;
}

export function checkCommand(): Command {
  const command = new Command('check')
    .description('check whether a server follows the rules of a plant store')
    .argument('<BASE_URL>', 'base address of the server, without /plants');
  return addTokenOptions(command)
    .addOption(
      new Option('--format <format>', 'format of the results').choices(Object.keys(FORMATS)).default('text'),
    )
    .option(
      '--ids <FROM..TO>',
      'store plants only under ids in this range; rules that need other ids are not checked',
      parseIds,
    )
    .option('--yes', 'store plants under random ids and those that rules name, also over plants that exist')
    .addHelpText('after', HELP)
    .action(check);
}

async function check(baseUrlText: string, options: CheckOptions, command: Command): Promise<void> {
  const baseUrl = readBaseUrl(baseUrlText, 'BASE_URL');
  const ids = drawIds(RULES, options.ids);
  if (!options.ids && !options.yes) {
    const what = `${shownIds(ids)} (random ids differ in each run), also over plants that exist`;
    throw new Failure(`choose ids with --ids FROM..TO, or add --yes: the check would store ${what}`, 2);
  }
  const { token } = readToken(command);
  console.error(`Storing ${shownIds(ids)}. Plants that the server already has under these ids may change.`);
  const results = await stoppable(async stop => {
    const server = { plantsUrl: plantsUrl(baseUrl), token, stop };
    const results = await checkRules(RULES, server, ids);
    process.stdout.write(FORMATS[options.format](results, baseUrl));
    stop.throwIfAborted();
    return results;
  }, 'the results so far were written');
  const broken = results.filter(({ rule, verdict }) => verdict === 'does not hold' && rule.level === 'MUST');
  if (broken.length > 0) throw new Failure(`MUST rules that do not hold: ${broken.length}`);
}

function parseIds(text: string): IdRange {
  const [, from, to] = /^(-?[0-9]{1,19})\.\.(-?[0-9]{1,19})$/.exec(text) ?? [];
  const range = { from: BigInt(from ?? 1), to: BigInt(to ?? 0) };
  if (isInt64(range.from) && isInt64(range.to) && range.from <= range.to) return range;
  throw new InvalidArgumentError(
    'Write it as FROM..TO with two 64-bit integers, the smaller first, for example 1000000..1999999.',
  );
}
