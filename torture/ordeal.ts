/** What an ordeal is given. */
export interface OrdealOrder {
  /** Everything drawn at random comes from it, so that the same seed gives the same ordeal again. */
  seed: number;
  /** How long it goes on; it may end earlier when it has nothing left to do. */
  budgetMs: number;
  /** A program that is loaded before the service and breaks one of its promises; the ordeal must then find faults. */
  weakness: Weakness | undefined;
  /** Ends it early. */
  signal: AbortSignal;
  /** Tells a person how far it has come. */
  tell(line: string): void;
}

export interface OrdealResult {
  /** Each promise that was broken, a line each; none when all were kept. */
  faults: string[];
  /** What was counted and measured, by name with its unit. */
  figures: Record<string, string | number>;
}

/** Something that a service must survive with every promise kept. */
export interface Ordeal {
  name: string;
  /** What it does, in one line. */
  summary: string;
  /** The weaknesses that it must find; none where it is about something else than what is stored. */
  finds: readonly Weakness[];
  /** @returns why it cannot run on this machine, and what to do about that; undefined where it can */
  obstacle?(): string | undefined;
  run(order: OrdealOrder): Promise<OrdealResult>;
}

/** The obstacle of an ordeal that reads the memory of the service, or the system's queues. */
export function procObstacle(): string | undefined {
  return process.platform === 'linux' ? undefined : 'it reads /proc; run it on Linux';
}

/** Each is two modules of `torture/weakness`, one for each engine, of which the right one is loaded before the service. */
export const WEAKNESSES = ['synchronous-off', 'answer-before-commit'] as const;
export type Weakness = (typeof WEAKNESSES)[number];
