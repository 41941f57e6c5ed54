import type { PlantCommits } from '../core/commit/plant-commits.ts';
import type { ResponseObserver } from '../core/extension-points.ts';

/** @returns `commit`, which calls the observers before and after each batch */
export function observedCommit(
  commit: PlantCommits['commit'],
  observers: readonly ResponseObserver[],
): PlantCommits['commit'] {
  const observing = observers.filter(({ committing }) => committing !== undefined);
  if (observing.length === 0) return commit;
  return writes => {
    const onEnd = observing.flatMap(observer => observer.committing?.(writes) ?? []);
    return commit(writes).finally(() => {
      for (const each of onEnd) each();
    });
  };
}
