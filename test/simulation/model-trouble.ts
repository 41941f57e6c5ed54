import type { ModelPostgres, ServerPair } from './model-postgres.ts';
import type { ModelServer } from './model-server.ts';
import { count } from './part.ts';

/** Longest time of most kinds of trouble. */
const TROUBLE_MAX_MS = 3_000;
/** A client may notice so late that the host of its connection has vanished. */
const NOTICED_MAX_MS = 8_000;

/**
 * What goes wrong with a model of PostgreSQL. Each run has some kinds of trouble only: with all of
 * them at once, hardly a plant would be stored.
 */
export class Trouble {
  readonly #model: ModelPostgres;
  readonly #kinds: (() => void)[];

  constructor(model: ModelPostgres) {
    this.#model = model;
    const { scheduler } = model;
    this.#kinds = [
      () => this.#failStatements(),
      () => this.#failStatements(),
      () => this.#hang(),
      () => this.#restart(),
      () => this.#disconnectStandby(),
      () => this.#fail('isReadOnly', 'a primary becomes read-only'),
      () => this.#fail('isFull', 'a server has no connection left'),
      () => this.#killSessions(),
      () => this.#pair().primary.cancelWait(),
      () => this.#takeOver(),
      () => this.#takeOver(),
    ].filter(() => scheduler.happens(50));
    if (!model.isCitus) return;
    this.#kinds.push(() => this.#moveShards());
    if (scheduler.happens(50)) this.#kinds.push(() => this.#convertTable());
    if (scheduler.happens(30)) this.#kinds.push(() => this.#changeTable());
  }

  begin(): void {
    if (this.#kinds.length > 0) this.#model.scheduler.pick(...this.#kinds)();
  }

  endAll(): void {
    const model = this.#model;
    model.faults = model.noFaults();
    for (const pair of model.pairs) {
      const { primary } = pair;
      if (!primary.isUp) primary.start();
      primary.hangsUntilMs = 0;
      primary.isReadOnly = primary.isFull = false;
      primary.isConnectedToStandby = true;
      pair.other.follow(primary);
    }
  }

  #pair(): ServerPair {
    return this.#model.scheduler.pick(...this.#model.pairs);
  }

  #count(what: string): void {
    count(this.#model.happened, what);
  }

  #later(msMax: number, action: () => void): void {
    const { scheduler } = this.#model;
    scheduler.later(0, scheduler.pick(msMax / 10, msMax), action);
  }

  #failStatements(): void {
    const { scheduler } = this.#model;
    const faults = this.#model.noFaults();
    for (const kind of Object.keys(faults) as (keyof typeof faults)[]) {
      if (scheduler.happens(40)) faults[kind] = scheduler.pick(3, 10, 30);
    }
    faults.settingLost = Math.min(faults.settingLost, 3);
    this.#model.faults = faults;
    this.#later(TROUBLE_MAX_MS, () => {
      if (this.#model.faults === faults) this.#model.faults = this.#model.noFaults();
    });
  }

  #hang(): void {
    const { scheduler } = this.#model;
    this.#count('a server hangs');
    scheduler.pick(...this.#pair().servers).hangsUntilMs =
      scheduler.now() + scheduler.random(scheduler.pick(400, 4_000));
  }

  #restart(): void {
    const { primary } = this.#pair();
    this.#count('a server restarts');
    this.#stop(primary);
    this.#later(1_500, () => {
      if (primary.isPrimary && !primary.isUp) primary.start();
    });
  }

  #stop(server: ModelServer): void {
    const isSilent = this.#model.scheduler.happens(30);
    if (isSilent) this.#count('a host vanishes');
    server.stop(isSilent ? NOTICED_MAX_MS : 0);
  }

  #disconnectStandby(): void {
    const { primary } = this.#pair();
    if (!primary.isSynchronous) return;
    this.#count('a standby is not connected');
    primary.isConnectedToStandby = false;
    this.#later(TROUBLE_MAX_MS, () => {
      primary.isConnectedToStandby = true;
      primary.replicate();
    });
  }

  #fail(what: 'isReadOnly' | 'isFull', event: string): void {
    const { primary } = this.#pair();
    this.#count(event);
    primary[what] = true;
    this.#later(TROUBLE_MAX_MS, () => {
      primary[what] = false;
    });
  }

  #killSessions(): void {
    const { scheduler } = this.#model;
    this.#count('sessions are killed');
    for (const session of [...this.#pair().primary.sessions]) if (scheduler.happens(50)) session.end();
  }

  #moveShards(): void {
    this.#model.moveShard();
    this.#model.moveShard();
  }

  #convertTable(): void {
    const { scheduler } = this.#model;
    void scheduler.start(() => this.#model.convertTable(scheduler.random(TROUBLE_MAX_MS)));
  }

  #changeTable(): void {
    void this.#model.scheduler.start(() => this.#model.changeTable());
  }

  /** Without a synchronous standby only in a way that loses nothing. */
  #takeOver(): void {
    const { scheduler } = this.#model;
    const pair = this.#pair();
    const { primary: old, other } = pair;
    if (old.standby !== other || !old.isUp) return;
    if (!this.#model.isSynchronous) {
      this.#count('an operator switches over');
      old.stop();
      other.log = [...old.log];
      pair.failOver();
      other.standby = old;
      old.follow(other);
      return;
    }
    const isSplit = scheduler.happens(50);
    this.#count(isSplit ? 'a standby takes over while the primary runs' : 'a standby takes over');
    if (!isSplit) this.#stop(old);
    this.#later(isSplit ? 0 : 1_000, () => {
      if (pair.primary !== old || old.standby !== other) return;
      if (other.log.length < old.log.length) this.#count('a failover loses commits');
      pair.failOver();
      this.#later(TROUBLE_MAX_MS, () => {
        if (pair.primary === other && other.standby === undefined) old.follow(other);
      });
    });
  }
}
