import type { CopyTarget } from '../copy-target.ts';
import type { PlantReader } from '../plant-reader.ts';
import { type PostgresAddress, START_TIMEOUT_MS } from '../postgres/postgres-url.ts';
import type { PlantSearch } from '../search/plant-search.ts';
import type { StorageEngine } from '../storage-engine.ts';
import type { ServedSettings, ServedStore, StoreOpener } from './store-opener.ts';

/**
 * Opens a store in PostgreSQL. All modules with the driver are imported on use, because a service on
 * SQLite starts faster without it.
 */
export class PostgresOpener implements StoreOpener {
  readonly file = undefined;
  readonly #address: PostgresAddress;

  constructor(address: PostgresAddress) {
    this.#address = address;
  }

  async openServed(settings: ServedSettings, onWait: (message: string) => void): Promise<ServedStore> {
    const { repeatedIdRule, connections } = settings;
    const { PostgresEngine } = await import('../postgres/postgres-engine.ts');
    const engine = await PostgresEngine.open(
      { address: this.#address, repeatedIdRule, connections },
      { timeoutMs: START_TIMEOUT_MS, onWait },
    );
    return { engine, isAfterCrash: false, [Symbol.asyncDispose]: () => engine.close() };
  }

  async openForCommand(missing: 'create' | 'reject'): Promise<StorageEngine> {
    if (missing === 'reject') await (await this.openReader())[Symbol.asyncDispose]();
    const { PostgresEngine } = await import('../postgres/postgres-engine.ts');
    return PostgresEngine.open({ address: this.#address, repeatedIdRule: 'revise', connections: 1 });
  }

  async openReader(): Promise<PlantReader> {
    const { openPostgresReader } = await import('../postgres/access/postgres-reader.ts');
    return openPostgresReader(this.#address);
  }

  async openSearch(): Promise<PlantSearch> {
    const { openPostgresSearch } = await import('../postgres/access/postgres-search.ts');
    return openPostgresSearch(this.#address);
  }

  async openCopyTarget(): Promise<CopyTarget> {
    const { openPostgresTarget } = await import('../postgres/access/postgres-target.ts');
    return openPostgresTarget(this.#address);
  }
}
