import type { CommitEngine } from '../core/commit/plant-commits.ts';
import type { Tracer } from '../core/extension-points.ts';

/** @returns `commit`, which calls the tracers before and after each batch */
export function tracedCommit(
  commit: CommitEngine['commit'],
  tracers: readonly Tracer[],
): CommitEngine['commit'] {
  if (tracers.length === 0) return commit;
  return writes => {
    const onEnd = tracers.flatMap(tracer => tracer.committing(writes) ?? []);
    return commit(writes).finally(() => {
      for (const each of onEnd) each();
    });
  };
}
