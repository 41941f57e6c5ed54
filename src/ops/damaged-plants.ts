import type { PlantWrite, StoreUnavailable, WriteResult } from '../store/plant-store.ts';
import type { ServiceLog } from './rate-limited-log.ts';

/** Ids of damaged plants that are logged and counted. */
const DAMAGED_PLANTS_MAX = 10_000;

const WARNING =
  'stored plants are damaged, so creates of them get 503; the log has their ids; see docs/operate/backup.md, "Damaged stores"';
const UNREADABLE =
  'a part of the store cannot be read, so creates that need it get 503; the log has the cause; see docs/operate/backup.md, "Damaged stores"';

/**
 * The plants that were sent again and whose latest revision is damaged. A plant is logged once, and
 * counted until a commit finds it intact, as after a repair.
 */
export class DamagedPlants {
  readonly #log: ServiceLog;
  readonly #ids = new Set<bigint>();
  #isUnreadable = false;

  constructor(log: ServiceLog) {
    this.#log = log;
  }

  get count(): number {
    return this.#ids.size;
  }

  /** The texts have no ids, so that each is logged once while its cause lasts. */
  get warnings(): string[] {
    return [...(this.count > 0 ? [WARNING] : []), ...(this.#isUnreadable ? [UNREADABLE] : [])];
  }

  /** The warning stays until the service ends: later commits may not need the damaged part. */
  commitFailed(cause: unknown): void {
    this.#isUnreadable ||= (cause as StoreUnavailable).isDamage;
  }

  observe(writes: readonly PlantWrite[], results: readonly WriteResult[]): void {
    for (const [index, { rejected }] of results.entries()) {
      if (rejected === 'damaged') this.#add(writes[index]!.plant.id);
      else if (this.#ids.size > 0) this.#ids.delete(writes[index]!.plant.id);
    }
  }

  #add(id: bigint): void {
    if (this.#ids.has(id) || this.count === DAMAGED_PLANTS_MAX) return;
    this.#ids.add(id);
    this.#log.error(
      { id: String(id) },
      `the latest revision of plant ${id} is damaged: its checksum is wrong; creates of this plant get 503`,
    );
  }
}
