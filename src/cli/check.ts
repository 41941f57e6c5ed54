import { Command, InvalidArgumentError, Option } from 'commander';
import { plantsUrl } from '../client/transport.ts';
import { isInt64 } from '../contract/int64.ts';
import { checkRules } from './check/check-run.ts';
import { RULES_FOR_EVERY_STORE } from './check/http-rules.ts';
import { drawIds, type IdRange, idsNeeded, type RunIds, shownIds } from './check/ids.ts';
import { junitReport } from './check/junit-report.ts';
import { OWN_RULES } from './check/own-rules.ts';
import { isBroken, jsonReport, type Report, textReport } from './check/report.ts';
import type { Rule, Server } from './check/rule.ts';
import { Failure } from './failure.ts';
import { stoppable } from './interruption.ts';
import { amount, CountedProgress } from './progress-display.ts';
import { addTokenOptions, readBaseUrl, readToken } from './service-options.ts';

const FORMATS = { text: textReport, json: jsonReport, junit: junitReport };

const HELP = `
Each rule has a level. MUST: the API requires it. SHOULD: the API does not
mention it, but HTTP or JSON requires it. MAY: the server may choose. The exit
code is 1 if the server violates a MUST rule.

The check stores plants, which nobody can delete, so it needs --ids or --yes.

Examples:
  $ npx plant-store check https://plants.example/v1 --yes --token-file token.txt
  $ npx plant-store check http://127.0.0.1:8080 --ids 9000000000000000000..9000000000000999999
  $ npx plant-store check https://plants.example --yes --format junit > check.xml`;

interface CheckOptions {
  format: keyof typeof FORMATS;
  ids?: IdRange;
  yes?: true;
  ours?: true;
  dryRun?: true;
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
    .option(
      '--ours',
      'also check the rules of this plant store, which other plant stores do not have to follow',
    )
    .option('--dry-run', 'list the rules and send nothing')
    .addHelpText('after', HELP)
    .action(check);
}

async function check(baseUrlText: string, options: CheckOptions, command: Command): Promise<void> {
  const baseUrl = readBaseUrl(baseUrlText, 'BASE_URL');
  const rules = options.ours ? [...RULES_FOR_EVERY_STORE, ...OWN_RULES] : RULES_FOR_EVERY_STORE;
  checkIsEnough(rules, options.ids);
  const write = FORMATS[options.format];
  const report: Report = { baseUrl, startedAt: new Date(), elapsedMs: 0, results: [] };
  if (options.dryRun) {
    report.results = rules.map(rule => ({ rule, verdict: 'not checked', message: 'dry run', elapsedMs: 0 }));
    process.stdout.write(write(report));
    return;
  }
  const ids = drawIds(rules, options.ids);
  if (!options.ids && !options.yes) {
    const what = `${shownIds(ids)} (random ids differ in each run), also over plants that exist`;
    throw new Failure(`the check would store ${what}; choose ids with --ids FROM..TO, or add --yes`, 2);
  }
  const token = readToken(command);
  await stoppable(async stop => {
    await checkServer({ plantsUrl: plantsUrl(baseUrl), token, stop }, rules, ids, report);
    process.stdout.write(write(report));
    stop.throwIfAborted();
  }, 'the results so far were written');
  if (report.failure !== undefined) throw new Failure(report.failure);
  const broken = report.results.filter(isBroken).length;
  if (broken === 0) return;
  throw new Failure(`${amount(broken, 'MUST rule')} ${broken === 1 ? 'does' : 'do'} not hold`);
}

/** @param report receives the results, or the reason why there are none */
async function checkServer(
  server: Server,
  rules: readonly Rule[],
  ids: RunIds,
  report: Report,
): Promise<void> {
  console.error(`Storing ${shownIds(ids)}. Plants that the server already has under these ids may change.`);
  const startMs = performance.now();
  using progress = new CountedProgress('checking', 'rules', rules.length);
  try {
    report.results = await checkRules(rules, server, ids, () => progress.done++);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    report.failure = error.message;
  }
  report.elapsedMs = performance.now() - startMs;
}

function parseIds(text: string): IdRange {
  const [, from, to] = /^(-?[0-9]{1,19})\.\.(-?[0-9]{1,19})$/.exec(text) ?? [];
  const range = { from: BigInt(from ?? 1), to: BigInt(to ?? 0) };
  if (isInt64(range.from) && isInt64(range.to) && range.from <= range.to) return range;
  throw new InvalidArgumentError(
    'Write it as FROM..TO with two 64-bit integers, the smaller first, for example 1000000..1999999.',
  );
}

function checkIsEnough(rules: readonly Rule[], range: IdRange | undefined): void {
  if (range === undefined) return;
  const { from, to } = range;
  const [needed, count] = [idsNeeded(rules), to - from + 1n];
  if (count >= needed) return;
  throw new Failure(
    `--ids ${from}..${to} contains ${count} ids, but the rules need ${needed}; give a wider range`,
    2,
  );
}
