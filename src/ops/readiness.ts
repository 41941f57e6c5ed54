import type { ObservedService } from './observed-service.ts';

/** One thing that is well or not. */
export interface Check {
  name: string;
  ok: boolean;
  /** A sentence for an operator. */
  detail: string;
}

/** What `/readyz` says. Only the checks of the shutdown and of the store decide it; the others will need somebody's hand. */
export interface Readiness {
  status: 'ready' | 'not ready';
  /** Why plants cannot be taken. */
  reason?: string;
  /** What an operator should know though they can; a sentence each. */
  warnings?: readonly string[];
  checks: readonly Check[];
}

/** Checks everything that keeps the service from taking plants, or soon may. */
export async function readinessOf(service: ObservedService): Promise<Readiness> {
  const [store, { isCheckpointFailing }] = await Promise.all([service.storeState(), service.engineFigures()]);
  const { plantsUnderWay, plantsUnderWayMax } = service.load();
  const { known, areCurrent } = service.tokens();
  const checks: Check[] = [];
  const check = (name: string, ok: boolean, detail: string, fault: string): void => {
    checks.push({ name, ok, detail: ok ? detail : fault });
  };
  check('shutdown', !service.isShuttingDown(), 'the service takes requests', 'shutting down');
  const unreachable = 'the store cannot be used now; the log has the cause';
  check('store', store.reachable, 'the store answers', unreachable);
  // It does not decide: where nothing is sent to a service that is not ready, nothing would find out that it is over.
  check(
    'commits',
    !service.isCommitFailing(),
    'the last commit was confirmed',
    'the last commit was not confirmed; its plants were answered 503, and the next one tries again',
  );
  check(
    'queue',
    plantsUnderWay < plantsUnderWayMax,
    `${plantsUnderWay} of at most ${plantsUnderWayMax} plants wait for a commit or are in one`,
    'as many plants are under way as can be committed in good time; further ones are answered 503',
  );
  check(
    'tokens',
    areCurrent,
    `${known} tokens are known, with all changes`,
    'the store does not answer for tokens; those known stay in force, revoked ones among them',
  );
  if (isCheckpointFailing !== undefined) {
    check(
      'checkpoint',
      !isCheckpointFailing,
      'the write-ahead log is copied into the database file',
      'the write-ahead log cannot be copied into the database file, so it grows; the warnings have the cause',
    );
  }
  if (store.reachable) {
    const { warnings } = store;
    check('warnings', warnings.length === 0, 'the store warns of nothing', warnings.join('; '));
  }
  const reason = checks.find(({ name, ok }) => !ok && ['shutdown', 'store'].includes(name))?.detail;
  if (reason !== undefined) return { status: 'not ready', reason, checks };
  const warnings = store.reachable && store.warnings.length > 0 ? { warnings: store.warnings } : {};
  return { status: 'ready', ...warnings, checks };
}
