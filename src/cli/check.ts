import { Command, InvalidArgumentError, Option } from 'commander';
import { isInt64 } from '../contract/int64.ts';
import { checkRules, leaveUnchecked } from './check/check-run.ts';
import { makeContact } from './check/first-contact.ts';
import { junitReport } from './check/junit-report.ts';
import { OWN_RULES } from './check/own-rules.ts';
import { isBroken, jsonReport, type Report, textReport } from './check/report.ts';
import type { Rule } from './check/rule.ts';
import { RULES_FOR_EVERY_STORE } from './check/rules.ts';
import { drawIds, fixedIdsOf, type IdRange, idsNeeded, makeTarget, type RunIds } from './check/target.ts';
import { Failure } from './failure.ts';
import { Interruption, stoppable } from './interruption.ts';
import { ProgressDisplay } from './progress-display.ts';
import { addTokenOptions, readBaseUrl, readToken } from './service-options.ts';

const FORMATS = { text: textReport, json: jsonReport, junit: junitReport };

const HELP = `
A rule is MUST when the interface itself says it, SHOULD when HTTP or JSON says it where the interface is silent, and
MAY when it is a free choice. The exit code is 1 when a MUST does not hold. --dry-run lists the rules.

The check stores plants, and no plant store has a way to delete one. Choose the ids with --ids where that matters.

Examples:
  $ npx plant-store check https://plants.example/v1 --token-file token.txt
  $ npx plant-store check http://127.0.0.1:8080 --ids 9000000000000000000..9000000000000999999
  $ npx plant-store check https://plants.example --format junit > check.xml`;

interface CheckOptions {
  format: keyof typeof FORMATS;
  ids?: IdRange;
  ours?: true;
  dryRun?: true;
}

/** `check BASE_URL`: finds out which rules a server keeps that claims to be a plant store. */
export function checkCommand(): Command {
  const command = new Command('check')
    .description('check whether a server keeps the rules of a plant store')
    .argument('<BASE_URL>', 'base address of the server, to which /plants is added');
  return addTokenOptions(command)
    .addOption(
      new Option('--format <format>', 'how the results are written')
        .choices(Object.keys(FORMATS))
        .default('text'),
    )
    .option('--ids <FROM..TO>', 'store plants under these ids only, both ends included', parseIds)
    .option('--ours', 'check what this plant store promises beyond the interface too')
    .option('--dry-run', 'list the rules, and send nothing')
    .addHelpText('after', HELP)
    .action(check);
}

async function check(baseUrlText: string, options: CheckOptions, command: Command): Promise<void> {
  const baseUrl = readBaseUrl(baseUrlText, 'BASE_URL');
  const rules = options.ours ? [...RULES_FOR_EVERY_STORE, ...OWN_RULES] : RULES_FOR_EVERY_STORE;
  const { ids } = options;
  const needed = idsNeeded(rules);
  if (ids !== undefined && ids.to - ids.from + 1n < needed) {
    const has = `--ids ${ids.from}..${ids.to} holds ${ids.to - ids.from + 1n} ids`;
    throw new Failure(`${has}, and the rules need ${needed}; give a wider range`, 2);
  }
  const write = FORMATS[options.format];
  if (options.dryRun) {
    const results = leaveUnchecked(rules, 'dry run');
    process.stdout.write(write({ baseUrl, startedAt: new Date(), elapsedMs: 0, results }));
    return;
  }
  const token = readToken(command);
  let interruption: unknown;
  const report = await stoppable(stop => {
    stop.addEventListener('abort', () => (interruption = stop.reason));
    return checkServer(baseUrl, token, rules, ids, stop);
  });
  process.stdout.write(write(report));
  if (report.failure !== undefined) throw new Failure(report.failure);
  const broken = report.results.filter(isBroken).length;
  if (broken > 0) {
    console.error(`plant-store: ${broken} of the rules that must hold ${broken === 1 ? 'does' : 'do'} not`);
  }
  process.exitCode = interruption instanceof Interruption ? interruption.exitCode : broken > 0 ? 1 : 0;
}

async function checkServer(
  baseUrl: URL,
  token: string,
  rules: readonly Rule[],
  range: IdRange | undefined,
  stop: AbortSignal,
): Promise<Report> {
  const ids = drawIds(rules, range);
  console.error(warning(ids, rules, range));
  const startMs = performance.now();
  const report: Report = { baseUrl, startedAt: new Date(), elapsedMs: 0, results: [] };
  const target = makeTarget(baseUrl, token, ids, stop);
  try {
    await makeContact(target);
    let done = 0;
    const state = () => ({ done, text: `${done} of ${rules.length} rules checked` });
    const progress = new ProgressDisplay(rules.length, state);
    const checked = checkRules(rules, target, range, () => done++);
    report.results = await checked.finally(() => progress.stop());
  } catch (error) {
    if (stop.aborted) report.results = leaveUnchecked(rules, 'the check was stopped before');
    else if (error instanceof Failure) report.failure = error.message;
    else throw error;
  }
  report.elapsedMs = performance.now() - startMs;
  return report;
}

function parseIds(text: string): IdRange {
  const [, from, to] = /^(-?[0-9]{1,19})\.\.(-?[0-9]{1,19})$/.exec(text) ?? [];
  const range = { from: BigInt(from ?? 1), to: BigInt(to ?? 0) };
  if (isInt64(range.from) && isInt64(range.to) && range.from <= range.to) return range;
  throw new InvalidArgumentError(
    'Write it as FROM..TO with two integers of 64 bits, the smaller first, for example 1000000..1999999.',
  );
}

/** Says under which ids plants will be stored. */
function warning({ fresh, neighbours }: RunIds, rules: readonly Rule[], range: IdRange | undefined): string {
  const fixed = [...fixedIdsOf(rules)].filter(
    id => range === undefined || (id >= range.from && id <= range.to),
  );
  const single = [...(neighbours ?? []), ...fixed].sort((a, b) => Number(a - b));
  const count = fresh.length + single.length;
  const others = single.length > 0 ? `, and ${single.join(', ')}` : '';
  return (
    `Storing up to ${count} plants that nobody can delete: ids ${fresh[0]} to ${fresh.at(-1)}${others}. ` +
    'What the server has under these ids already may be revised or replaced.'
  );
}
