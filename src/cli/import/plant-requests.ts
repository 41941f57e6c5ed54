import type { Answer } from './plant-answer.ts';

/** Sends plants to a service. */
export interface PlantRequests {
  /**
   * @param body a NewPlant as JSON
   * @param onAnswer is called once, with whatever came of it
   */
  post(body: string, onAnswer: (answer: Answer) => void): void;
  /** Cuts the connections; what was not answered is answered with `no answer`. */
  close(): Promise<void>;
}

/** The path of the operation below a base address. */
export function plantsPath(url: URL): string {
  return `${url.pathname.replace(/\/$/, '')}/plants`;
}
