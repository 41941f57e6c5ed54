/** From the end of a fault to the next plant that is kept, by a service that goes on. */
const RECOVERY_MS_MAX = 1_000;
/** From the start of a service to the first. */
const RESTART_MS_MAX = 2_000;

/** @param tookMs each from the end of a fault to the next plant that was kept. @returns a fault for each that is late */
export function lateRecoveries(...tookMs: number[]): string[] {
  return late(tookMs, RECOVERY_MS_MAX, 'the next plant was kept', 'the fault was over');
}

/** @param tookMs each from the start of a service to the first plant that was kept. @returns a fault for each that is late */
export function lateRestarts(...tookMs: number[]): string[] {
  return late(tookMs, RESTART_MS_MAX, 'the first plant was kept', 'a restart');
}

function late(tookMs: number[], mostMs: number, what: string, since: string): string[] {
  return tookMs.filter(ms => ms > mostMs).map(ms => `${what} ${ms.toFixed(0)} ms after ${since}`);
}
