import { withoutToken } from '../visible-text.ts';
import { Finding } from './finding.ts';
import { fixedIdsOf, type IdRange } from './ids.ts';
import { NotChecked } from './not-checked.ts';
import type { Rule } from './rule.ts';
import type { Target } from './target.ts';

/** Rules under way at the same time: enough for a server far away, and little load for any. */
const RULES_AT_ONCE = 8;

/** A message shows this much of what a server answers, in UTF-16 code units. */
const MESSAGE_LENGTH_MAX = 500;

/** What came of one rule. No text in it holds the token. */
export interface RuleResult {
  rule: Rule;
  verdict: 'holds' | 'does not hold' | 'not checked';
  /** What was expected and found, or why the rule was not checked; undefined when it holds. */
  message?: string;
  /** The request and the answer that do not fit; undefined when there is none. */
  sent?: string;
  received?: string;
  elapsedMs: number;
}

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
      results[index] = await checkRule(rule, target, range);
      onResult();
    }
  };
  await Promise.all(Array.from({ length: RULES_AT_ONCE }, work));
  return results;
}

/** A result for each rule of a run that sends nothing. */
export function leaveUnchecked(rules: readonly Rule[], message: string): RuleResult[] {
  return rules.map(rule => ({ rule, verdict: 'not checked', message, elapsedMs: 0 }));
}

async function checkRule(rule: Rule, target: Target, range: IdRange | undefined): Promise<RuleResult> {
  const outside = [...fixedIdsOf([rule])].find(
    id => range !== undefined && (id < range.from || id > range.to),
  );
  const startMs = performance.now();
  let outcome: Omit<RuleResult, 'rule' | 'elapsedMs'>;
  try {
    if (target.stop.aborted) throw new NotChecked('the check was stopped before');
    if (outside !== undefined) throw new NotChecked(`it needs the id ${outside}, which may not be used`);
    await rule.check(target);
    outcome = { verdict: 'holds' };
  } catch (error) {
    outcome = outcomeOf(error, target);
  }
  return { rule, ...outcome, elapsedMs: performance.now() - startMs };
}

/** @throws the error itself when it says nothing of the rule */
function outcomeOf(error: unknown, { stop, token }: Target): Omit<RuleResult, 'rule' | 'elapsedMs'> {
  if (stop.aborted) return { verdict: 'not checked', message: 'the check was stopped before' };
  if (error instanceof NotChecked) return { verdict: 'not checked', message: error.message };
  if (!(error instanceof Finding)) throw error;
  const { sent, received } = error;
  const message = withoutToken(error.message, token).slice(0, MESSAGE_LENGTH_MAX);
  return { verdict: 'does not hold', message, sent, ...(received !== undefined && { received }) };
}
