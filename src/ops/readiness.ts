import type { ObservedService } from './observed-service.ts';

/** One thing that a look at the service finds well or not. */
export interface Check {
  name: string;
  ok: boolean;
  /** A sentence for an operator. */
  detail: string;
}

/**
 * Whether plants can be taken now: what an operator should know though they can, or why they can't; a sentence each.
 * The checks of the shutdown and of the store decide it, and the others are what will need somebody's hand.
 */
export type Readiness = { checks: readonly Check[] } & (
  | { ready: true; warnings: readonly string[] }
  | { ready: false; reason: string }
);

/** Looks at everything that keeps the service from taking plants, or soon may. */
export async function readinessOf(service: ObservedService): Promise<Readiness> {
  const [store, { isCheckpointFailing }] = await Promise.all([service.storeState(), service.engineFigures()]);
  const { plantsUnderWay, plantsUnderWayMax } = service.load();
  const { known, areCurrent } = service.tokens();
  const isShuttingDown = service.isShuttingDown();
  const unreachable = 'the store cannot be used now; the log has the cause';
  const checks: Check[] = [
    check('shutdown', !isShuttingDown, 'the service takes requests', 'shutting down'),
    check('store', store.reachable, 'the store answers', unreachable),
    // It does not decide: where nothing is sent to a service that is not ready, nothing would find out that it is over.
    check(
      'commits',
      !service.isCommitFailing(),
      'the last commit was confirmed',
      'the last commit was not confirmed; its plants were answered 503, and the next one tries again',
    ),
    check(
      'queue',
      plantsUnderWay < plantsUnderWayMax,
      `${plantsUnderWay} of at most ${plantsUnderWayMax} plants wait for a commit or are in one`,
      'as many plants are under way as can be committed in good time; further ones are answered 503',
    ),
    check(
      'tokens',
      areCurrent,
      `${known} tokens are known, with all changes`,
      'the store does not answer for tokens; those known stay in force, revoked ones among them',
    ),
  ];
  if (isCheckpointFailing !== undefined) {
    checks.push(
      check(
        'checkpoint',
        !isCheckpointFailing,
        'the write-ahead log is copied into the database file',
        'the write-ahead log cannot be copied into the database file, so it grows; the warnings have the cause',
      ),
    );
  }
  if (store.reachable) {
    const { warnings } = store;
    checks.push(check('warnings', warnings.length === 0, 'the store warns of nothing', warnings.join('; ')));
  }
  if (isShuttingDown) return { ready: false, reason: 'shutting down', checks };
  if (!store.reachable) return { ready: false, reason: unreachable, checks };
  return { ready: true, warnings: store.warnings, checks };
}

function check(name: string, ok: boolean, detail: string, fault: string): Check {
  return { name, ok, detail: ok ? detail : fault };
}
