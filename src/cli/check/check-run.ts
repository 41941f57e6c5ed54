import { withoutToken } from '../visible-text.ts';
import { MESSAGE_LENGTH_MAX, RULES_IN_FLIGHT } from './limits.ts';
import type { RuleResult } from './report.ts';
import { Finding, NotChecked, type Rule, type Target } from './rule.ts';
import type { IdRange } from './target.ts';

/**
 * Checks rules against a server, several at a time.
 *
 * @param range the ids that may be used; a rule that needs others is not checked
 * @param onResult is called as each result is there
 * @returns a result for each rule, in their order; once the target is stopped, the rest is not checked
 */
export async function checkRules(
  rules: readonly Rule[],
  target: Target,
  range: IdRange | undefined,
  onResult: () => void,
): Promise<RuleResult[]> {
  const results: RuleResult[] = [];
  const queue = rules.entries();
  const work = async (): Promise<void> => {
    for (const [index, rule] of queue) {
      const startMs = performance.now();
      const outcome = await checkRule(rule, target, range);
      results[index] = { rule, ...outcome, elapsedMs: performance.now() - startMs };
      onResult();
    }
  };
  await Promise.all(Array.from({ length: RULES_IN_FLIGHT }, work));
  return results;
}

/** A result for each rule of a run that sends nothing. */
export function leaveUnchecked(rules: readonly Rule[], message: string): RuleResult[] {
  return rules.map(rule => ({ rule, verdict: 'not checked', message, elapsedMs: 0 }));
}

/** @throws an error that says nothing of the rule */
async function checkRule(
  rule: Rule,
  target: Target,
  range: IdRange | undefined,
): Promise<Omit<RuleResult, 'rule' | 'elapsedMs'>> {
  const { stop, token } = target;
  const outside = rule.fixedIds?.find(id => range !== undefined && (id < range.from || id > range.to));
  try {
    stop.throwIfAborted();
    if (outside !== undefined) throw new NotChecked(`it needs the id ${outside}, which may not be used`);
    await rule.check(target);
    return { verdict: 'holds' };
  } catch (error) {
    if (stop.aborted) return { verdict: 'not checked', message: 'the check was stopped before' };
    if (error instanceof NotChecked) return { verdict: 'not checked', message: error.message };
    if (!(error instanceof Finding)) throw error;
    const { sent, received } = error;
    const message = withoutToken(error.message, token).slice(0, MESSAGE_LENGTH_MAX);
    return { verdict: 'does not hold', message, sent, received };
  }
}
