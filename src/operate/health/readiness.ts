import { problemText } from '../../core/problem.ts';
import { checksOf, type ReadinessCheck } from './readiness-checks.ts';
import type { ServiceState } from './service-state.ts';

/** When commits fail for longer than this, the service is not ready. */
const COMMITS_FAILING_MAX_MS = 5_000;
/**
 * If one of these checks fails, no plant is stored. `commits` also decides after 5 s of failure.
 */
const DECISIVE = ['shutdown', 'store', 'tokens'];

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
  checks: ReadinessCheck[];
}

/** The sentence that `/readyz`, the command `health` and the console show first. */
interface Verdict {
  state: 'well' | 'warning' | 'damaged' | 'not ready';
  sentence: string;
  /** Empty if all checks pass. */
  advice: string;
}

/** Decides from all checks whether the service is ready. */
export function readinessOf(state: ServiceState): Readiness {
  const checks = checksOf(state);
  const failing = checks.filter(({ ok }) => !ok);
  const isDecisive = ({ name }: ReadinessCheck): boolean =>
    name === 'commits' ? state.commits.failingMs > COMMITS_FAILING_MAX_MS : DECISIVE.includes(name);
  const decisive = failing.find(isDecisive);
  return {
    status: decisive === undefined ? 'ready' : 'not ready',
    ...(decisive !== undefined && { reason: textOf(decisive) }),
    ...(decisive === undefined && failing.length > 0 && { warnings: failing.map(textOf) }),
    verdict: verdictOf(decisive, failing[0]),
    restartedAt: state.restartedAt,
    checks,
  };
}

/** @param gravest the first check that fails; undefined: all pass */
function verdictOf(decisive: ReadinessCheck | undefined, gravest: ReadinessCheck | undefined): Verdict {
  const shown = decisive ?? gravest;
  if (shown === undefined)
    return { state: 'well', sentence: 'plants can be stored, and all checks pass', advice: '' };
  const { name, detail: sentence, advice } = shown;
  const state = decisive !== undefined ? 'not ready' : name === 'damage' ? 'damaged' : 'warning';
  return { state, sentence, advice };
}

function textOf({ detail: fault, advice }: ReadinessCheck): string {
  return problemText({ fault, advice });
}
