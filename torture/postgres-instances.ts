import { fileURLToPath } from 'node:url';
import { faultsOf, type LoggedRequest } from '../test/harness/client-log.ts';
import { type ServeProcess, startServe } from '../test/harness/program.ts';
import { storedRevisions } from '../test/harness/stored-revisions.ts';
import type { Weakness } from './ordeal.ts';

/** On one store. */
export const INSTANCES = 3;
/** Every request is answered by then, whatever PostgreSQL does: that is a promise. */
const ANSWER_MS_MAX = 5_000;

/** What the clients of some instances were told, and what became of it. */
export interface InstancesFigures {
  requests: number;
  /** Answered 200, by outcome. */
  created: number;
  revised: number;
  unchanged: number;
  /** Answered 5xx, or not at all. */
  unknown: number;
  storedRevisions: number;
  /** As client-log.ts names them; none when each promise was kept. */
  faults: string[];
  /** From the first byte of a request to its answer. */
  longestAnswerMs: number;
}

/** Compares what is stored with what clients were told. */
export async function figuresOf(database: string, log: readonly LoggedRequest[]): Promise<InstancesFigures> {
  const stored = await storedRevisions(database);
  const answered = (outcome: string): number =>
    log.filter(({ answer }) => answer?.outcome === outcome).length;
  return {
    requests: log.length,
    created: answered('created'),
    revised: answered('revised'),
    unchanged: answered('unchanged'),
    unknown: log.filter(({ answer }) => answer === undefined || answer.status >= 500).length,
    storedRevisions: stored.length,
    faults: faultsOf(log, stored),
    longestAnswerMs: log.reduce((most, { sentAt, answeredAt }) => Math.max(most, answeredAt - sentAt), 0),
  };
}

const COUNTS = ['requests', 'created', 'revised', 'unchanged', 'unknown', 'storedRevisions'] as const;

/** Several rounds of an ordeal as one. */
export class RoundsTally {
  readonly faults: string[] = [];
  readonly #counts: Record<(typeof COUNTS)[number], number> = {
    ...{ requests: 0, created: 0, revised: 0, unchanged: 0, unknown: 0, storedRevisions: 0 },
  };
  #longestAnswerMs = 0;

  /** @param round is named in front of each fault */
  add(round: string, figures: InstancesFigures): void {
    for (const name of COUNTS) this.#counts[name] += figures[name];
    this.#longestAnswerMs = Math.max(this.#longestAnswerMs, figures.longestAnswerMs);
    this.faults.push(...figures.faults.map(fault => `${round}: ${fault}`));
    if (figures.longestAnswerMs > ANSWER_MS_MAX)
      this.faults.push(`${round}: late: an answer took ${Math.round(figures.longestAnswerMs)} ms`);
  }

  get figures(): Record<string, string | number> {
    const { storedRevisions, ...counts } = this.#counts;
    return {
      ...counts,
      'stored revisions': storedRevisions,
      'longest answer': `${Math.round(this.#longestAnswerMs)} ms`,
    };
  }
}

/** Services on one store, each a process of its own. */
export class ServedInstances implements AsyncDisposable {
  readonly #instances: ServeProcess[] = [];
  readonly #start: () => Promise<ServeProcess>;

  private constructor(start: () => Promise<ServeProcess>) {
    this.#start = start;
  }

  static async start(database: string, weakness: Weakness | undefined): Promise<ServedInstances> {
    const nodeArgs = weakeningArgs(weakness);
    const started = new ServedInstances(() => startServe(database, [], { nodeArgs }));
    try {
      while (started.#instances.length < INSTANCES) started.#instances.push(await started.#start());
    } catch (error) {
      await started[Symbol.asyncDispose]();
      throw error;
    }
    return started;
  }

  /** Of each, as it is when it is asked for: one that was started again has another. */
  get urls(): (() => string)[] {
    return this.#instances.map((_, index) => () => this.#instances[index]!.url);
  }

  /** Ends one at once, and starts another in its place. */
  async killAndReplace(index: number): Promise<void> {
    await this.#instances[index]!.stop('SIGKILL');
    this.#instances[index] = await this.#start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#instances.map(each => each.stop('SIGKILL')));
  }
}

/** Arguments of Node that weaken a service on PostgreSQL. */
export function weakeningArgs(weakness: Weakness | undefined): string[] {
  if (weakness === undefined) return [];
  return ['--import', fileURLToPath(new URL(`./weakness/postgres-${weakness}.ts`, import.meta.url))];
}
