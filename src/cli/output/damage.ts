import { formatCount } from '../../formats/number-text.ts';
import { type Damaged, damageOf } from '../../proof/checked-revisions.ts';

/**
 * Prints a damaged revision, and sets the exit code to 1.
 *
 * @param store the start of the message, if the command uses two stores
 */
export function reportDamage({ revision }: Damaged, store = ''): void {
  process.exitCode = 1;
  console.error(`plant-store: ${store}${damageOf(revision)}`);
}

/** Prints faults. @param aheadOfClock the number of revisions whose time is ahead of the clock */
export function reportFaults(faults: readonly string[], aheadOfClock: number): void {
  for (const fault of faults) console.error(`plant-store: ${fault}`);
  if (aheadOfClock === 0) return;
  const which =
    aheadOfClock === 1 ? '1 revision has a time' : `${formatCount(aheadOfClock)} revisions have times`;
  console.error(
    `WARNING: ${which} ahead of this machine's clock; check the clocks; until the clock is past, the seal of \`verify\` does not cover them, and that of \`backup\` does`,
  );
}
