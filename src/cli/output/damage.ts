import { type CheckedRevision, Damaged, damageOf } from '../../store/audit/checked-revisions.ts';
import type { PlantRevision } from '../../store/plant-store.ts';

/** Tells the user of a damaged revision, and sets the exit code. @param store one of two stores */
export function reportDamage({ revision }: Damaged, store = ''): void {
  process.exitCode = 1;
  console.error(`plant-store: ${store}${damageOf(revision)}`);
}

/** Passes on the intact revisions, and reports the others. */
export async function* intactRevisions(
  revisions: AsyncIterable<CheckedRevision>,
): AsyncIterable<PlantRevision> {
  for await (const checked of revisions) {
    if (checked instanceof Damaged) reportDamage(checked);
    else yield checked;
  }
}
