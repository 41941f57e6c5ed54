/** How often each event happened in a run. An event that never happened was not checked. */
export type Happened = Record<string, number>;

/** A part of the service that is simulated. */
export interface Part {
  name: string;
  /**
   * Runs the production code with events that the seed decides.
   *
   * @param happened counts the events of all runs
   * @returns the number of steps
   * @throws at the first wrong state; the same seed fails again
   */
  simulate(seed: number, happened: Happened): Promise<number>;
}

export function count(happened: Happened, what: string, times = 1): void {
  happened[what] = (happened[what] ?? 0) + times;
}
