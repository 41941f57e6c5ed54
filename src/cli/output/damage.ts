import { type Damaged, damageOf } from '../../store/audit/checked-revisions.ts';

/** Tells the user of a damaged revision, and sets the exit code. @param store names one of two */
export function reportDamage({ revision }: Damaged, store = ''): void {
  process.exitCode = 1;
  console.error(`plant-store: ${store}${damageOf(revision)}`);
}
