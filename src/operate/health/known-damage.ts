import { StoreDamaged } from '../../core/commit/store-errors.ts';
import type { Problem } from '../../core/problem.ts';
import type { DamageRecord } from '../../engines/tables/damage-record.ts';
import type { CommandRun } from '../../engines/tables/operator-tables.ts';
import { rateLimitedLog, type ServiceLog } from '../log/rate-limited-log.ts';

/** The tables of a store with its known damage and the last runs of commands. */
interface DamageStore {
  recordDamage(damage: DamageRecord): Promise<void>;
  knownDamage(): Promise<DamageRecord | undefined>;
  lastRuns(): Promise<CommandRun[]>;
}

export const DAMAGE: Problem = {
  fault:
    'the store is damaged: a create, a search, verify or backup found content that is not as it was written',
  advice:
    'run npx plant-store verify, which names every fault, then repair the store (docs/operate/backup.md, "Damaged stores"); this warning stays until a verify passes',
};

/**
 * Damage of the store since the last `verify` that passed, and the last runs of commands.
 *
 * The store has the damage as a row. So each instance knows it after its next `refresh`, and after
 * a restart. Only `verify` deletes this row, unless another row has replaced it since that `verify`
 * began. `verify` compares rows and not times, so no clock has to be right.
 */
export class KnownDamage {
  readonly #store: DamageStore;
  readonly #onFailure: (cause: unknown) => void;
  /** Damage that the store does not have as a row yet. Each report is an object of its own. */
  #unrecorded: Pick<DamageRecord, 'foundBy'> | undefined;
  #recorded: DamageRecord | undefined;
  #lastRuns: readonly CommandRun[] = [];

  constructor(store: DamageStore, log: ServiceLog) {
    this.#store = store;
    const message =
      'what is known of damage, verify and backup cannot be read from the store or written to it';
    this.#onFailure = rateLimitedLog(details => log.warn(details, message));
  }

  get isKnown(): boolean {
    return this.#unrecorded !== undefined || this.#recorded !== undefined;
  }

  /** The last damage that the store has as a row. */
  get recorded(): DamageRecord | undefined {
    return this.#recorded;
  }

  /** The last noted run of each command. */
  get lastRuns(): readonly CommandRun[] {
    return this.#lastRuns;
  }

  /** @param foundBy the operation that found damage, such as `a create` */
  report(foundBy: string): void {
    const isNew = !this.isKnown;
    this.#unrecorded = { foundBy };
    // The first damage is stored at once, since the process may be killed. Later damage can wait.
    if (isNew) void this.refresh();
  }

  /** @returns a listener for failures, which reports damage and then calls `onFailure` */
  listener<Cause>(foundBy: string, onFailure: (cause: Cause) => void): (cause: Cause) => void {
    return cause => {
      if (cause instanceof StoreDamaged) this.report(foundBy);
      onFailure(cause);
    };
  }

  /** Stores new damage, and reads what other instances stored. It never throws. */
  async refresh(): Promise<void> {
    try {
      const unrecorded = this.#unrecorded;
      if (unrecorded !== undefined) await this.#store.recordDamage({ foundAt: Date.now(), ...unrecorded });
      this.#recorded = await this.#store.knownDamage();
      this.#lastRuns = await this.#store.lastRuns();
      // Damage that was reported meanwhile needs its own row: a `verify` may have begun in between.
      if (this.#unrecorded === unrecorded) this.#unrecorded = undefined;
    } catch (cause) {
      if (cause instanceof StoreDamaged) this.#unrecorded ??= { foundBy: 'reading what is known' };
      this.#onFailure(cause);
    }
  }
}

/** The start of the last message of a command that found faults. */
export const FAULTS_FOUND = 'FAULTS FOUND: ';

/** The result of a run, as an operator reads it. */
export function runText({ hasSucceeded, result }: CommandRun): string {
  return hasSucceeded ? result : `${FAULTS_FOUND}${result}`;
}
