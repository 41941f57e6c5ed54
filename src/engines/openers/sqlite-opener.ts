import { StoreMissing } from '../../core/commit/store-errors.ts';
import type { CopyTarget } from '../copy-target.ts';
import type { PlantReader } from '../plant-reader.ts';
import type { PlantSearch } from '../search/plant-search.ts';
import { wasOpenedForWriting } from '../sqlite/access/reading-database.ts';
import { openSqliteReader } from '../sqlite/access/sqlite-reader.ts';
import { openSqliteSearch } from '../sqlite/access/sqlite-search.ts';
import { rejectIfServed, runningService, takeServeLock, wasServed } from '../sqlite/files/serve-lock.ts';
import { makeFolderOf } from '../sqlite/files/store-files.ts';
import { orRejected } from '../sqlite/sqlite-errors.ts';
import type { StorageEngine } from '../storage-engine.ts';
import type { ServedSettings, ServedStore, StoreFile, StoreOpener } from './store-opener.ts';

/** Opens an SQLite store. Modules that only some commands need are imported on use. */
export class SqliteOpener implements StoreOpener {
  readonly file: StoreFile;
  readonly #path: string;
  readonly #makesFolder: boolean;

  /**
   * @param path path of the database file, absolute or relative
   * @param makesFolder whether a new store gets its folder
   */
  constructor(path: string, makesFolder: boolean) {
    this.#path = path;
    this.#makesFolder = makesFolder;
    this.file = {
      runningService: () => runningService(path),
      rejectIfServed: () => rejectIfServed(path),
      wasServed: () => wasServed(path),
      wasOpenedForWriting: () => wasOpenedForWriting(path),
    };
  }

  async openServed({ repeatedIdRule }: ServedSettings): Promise<ServedStore> {
    this.#makeFolder();
    // The lock comes first: a second service must not update the schema while the first one runs.
    await using parts = new AsyncDisposableStack();
    const { file: lockFile, isAfterCrash } = parts.use(takeServeLock(this.#path));
    const { SqliteEngine } = await import('../sqlite/sqlite-engine.ts');
    const engine = await SqliteEngine.open({ path: this.#path, repeatedIdRule, lockFile });
    parts.defer(() => engine.close());
    const opened = parts.move();
    return { engine, isAfterCrash, [Symbol.asyncDispose]: () => opened.disposeAsync() };
  }

  async openForCommand(missing: 'create' | 'reject'): Promise<StorageEngine> {
    // The reader rejects an outdated schema, because only the service may change the schema of an
    // existing store. A service may create a missing store at the same time.
    try {
      await openSqliteReader(this.#path)[Symbol.asyncDispose]();
    } catch (error) {
      if (missing === 'reject' || !(error instanceof StoreMissing)) throw error;
    }
    this.#makeFolder();
    const { SqliteEngine } = await import('../sqlite/sqlite-engine.ts');
    return SqliteEngine.open({ path: this.#path, repeatedIdRule: 'revise', lockFile: undefined });
  }

  async openReader(): Promise<PlantReader> {
    return openSqliteReader(this.#path);
  }

  async openSearch(): Promise<PlantSearch> {
    return openSqliteSearch(this.#path);
  }

  async openCopyTarget(): Promise<CopyTarget> {
    this.#makeFolder();
    const { openSqliteTarget } = await import('../sqlite/access/sqlite-target.ts');
    return openSqliteTarget(this.#path);
  }

  /** @throws {StoreRejected} */
  #makeFolder(): void {
    if (this.#makesFolder) orRejected(this.#path, () => makeFolderOf(this.#path));
  }
}
