import { withoutToken } from '../visible-text.ts';
import { makeContact } from './first-contact.ts';
import type { RunIds } from './ids.ts';
import { MESSAGE_LENGTH_MAX, RULES_IN_FLIGHT } from './limits.ts';
import type { RuleResult } from './report.ts';
import { Finding, NotChecked, type Rule, type Server, type Target } from './rule.ts';

/**
 * Checks rules against a server, several at a time.
 *
 * @param ids drawn for these rules; a rule that needs another id is not checked
 * @returns a result for each rule, in the order of the rules; after `server.stop` the rest is not
 *   checked
 * @throws {Failure} if the server does not accept a valid plant
 */
export async function checkRules(
  rules: readonly Rule[],
  server: Server,
  { fresh, fixed, neighbours }: RunIds,
  onResult: () => void,
): Promise<RuleResult[]> {
  await makeContact({ ...server, neighbours, id: fresh.at(-1)! }).catch(error => {
    if (!server.stop.aborted) throw error;
  });
  const results: RuleResult[] = [];
  const queue = rules.entries();
  const work = async (): Promise<void> => {
    for (const [index, rule] of queue) {
      const startMs = performance.now();
      const outcome = await checkRule(rule, { ...server, neighbours, id: fresh[index]! }, fixed);
      results[index] = { rule, ...outcome, elapsedMs: performance.now() - startMs };
      onResult();
    }
  };
  await Promise.all(Array.from({ length: RULES_IN_FLIGHT }, work));
  return results;
}

/** @throws an error that is no result of the rule */
async function checkRule(
  rule: Rule,
  target: Target,
  fixed: Set<bigint>,
): Promise<Omit<RuleResult, 'rule' | 'elapsedMs'>> {
  const { stop, token } = target;
  const outside = rule.fixedIds?.find(id => !fixed.has(id));
  try {
    stop.throwIfAborted();
    if (outside !== undefined) throw new NotChecked(`it needs the id ${outside}, which is not in --ids`);
    await rule.check(target);
    return { verdict: 'holds' };
  } catch (error) {
    if (stop.aborted) return { verdict: 'not checked', message: 'the check was stopped' };
    if (error instanceof NotChecked) return { verdict: 'not checked', message: error.message };
    if (!(error instanceof Finding)) throw error;
    const { sent, received } = error;
    const message = withoutToken(error.message, token).slice(0, MESSAGE_LENGTH_MAX);
    return { verdict: 'does not hold', message, sent, received };
  }
}
