import { writeFileSync } from 'node:fs';
import { makeNewFile } from './output/new-file.ts';
import { formatCount } from './output/progress-display.ts';

/** Creates the whole file of a seal, durably. @param text of `sealText` @throws {Failure} */
export async function writeSeal(file: string, text: string): Promise<void> {
  await makeNewFile(file, partial => writeFileSync(partial, text));
}

/** @param revisions the number of those whose time is ahead of the clock */
export function reportFaults(faults: readonly string[], revisions: number): void {
  for (const fault of faults) console.error(`plant-store: ${fault}`);
  if (revisions === 0) return;
  const which = revisions === 1 ? '1 revision has a time' : `${formatCount(revisions)} revisions have times`;
  console.error(
    `WARNING: ${which} ahead of this machine's clock; check the clocks; until the clock is past, the seal of \`verify\` does not cover them, and that of \`backup\` does`,
  );
}
