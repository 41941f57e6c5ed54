import { problemText } from '../../core/problem.ts';
import { checksOf, type FailedCheck, type Gravity, type ReadinessCheck } from './readiness-checks.ts';
import type { ServiceState } from './service-state.ts';

/** The body of `/readyz`. Without `?verbose`, it lacks `checks`. */
export interface Readiness {
  status: 'ready' | 'not ready';
  /** Why the service is not ready. */
  reason?: string;
  /** What operators should fix although the service is ready, the verdict first. */
  warnings?: string[];
  verdict: Verdict;
  /** Ms since 1970; null if there was no unclean end before this start. */
  restartedAt: number | null;
  checks: ShownCheck[];
}

interface ShownCheck {
  name: string;
  ok: boolean;
  detail: string;
  /** Empty if the check passes. */
  advice: string;
}

/** The sentence that `/readyz`, the command `health` and the console show first. */
interface Verdict {
  state: 'well' | Gravity;
  sentence: string;
  /** Empty if all checks pass. */
  advice: string;
}

/** Decides from all checks whether the service is ready. */
export function readinessOf(state: ServiceState): Readiness {
  const checks = checksOf(state);
  const failing = checks.filter(check => check.kind === 'failed');
  const decisive = failing.find(({ gravity }) => gravity === 'not ready');
  return {
    status: decisive === undefined ? 'ready' : 'not ready',
    ...(decisive !== undefined && { reason: textOf(decisive) }),
    ...(decisive === undefined && failing.length > 0 && { warnings: failing.map(textOf) }),
    verdict: verdictOf(decisive ?? failing[0]),
    restartedAt: state.restartedAt,
    checks: checks.map(shownCheck),
  };
}

/** @param gravest the check that matters most of those that fail; undefined: all pass */
function verdictOf(gravest: FailedCheck | undefined): Verdict {
  if (gravest === undefined)
    return { state: 'well', sentence: 'plants can be stored, and all checks pass', advice: '' };
  const { gravity, detail, advice } = gravest;
  return { state: gravity, sentence: detail, advice };
}

function shownCheck(check: ReadinessCheck): ShownCheck {
  const { kind, name, detail } = check;
  return { name, ok: kind === 'passed', detail, advice: kind === 'failed' ? check.advice : '' };
}

function textOf({ detail: fault, advice }: FailedCheck): string {
  return problemText({ fault, advice });
}
