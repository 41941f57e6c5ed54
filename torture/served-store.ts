import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import type { LoggedRequest } from '../test/harness/client-log.ts';
import { freePort } from '../test/harness/free-port.ts';
import { type ServeProcess, startServe } from '../test/harness/program.ts';
import { RandomLoad } from '../test/harness/random-load.ts';
import { faultsIn } from '../test/harness/stored-revisions.ts';
import { until } from '../test/harness/until.ts';
import type { FailingCalls } from './failing-calls-library.ts';
import type { Weakness } from './ordeal.ts';

/** What the service says when it stops confirming plants, and when it confirms them again. */
const FAILED = /"level":50,.*does not confirm plants/;

/** The service as an ordeal starts it. */
export interface ServedStoreSettings {
  /** The folder of the store; it is made. One of its own, which goes with the ordeal, when it is not given. */
  folder?: string;
  weakness: Weakness | undefined;
  /** Modules of this folder that are loaded before the service. */
  modules?: string[];
  /** Lets calls of the service on the files of its store fail. */
  calls?: FailingCalls;
}

/**
 * A service on a SQLite store, with all that its clients were told. It can be killed and started again at the same
 * address.
 */
export class ServedStore implements AsyncDisposable {
  readonly folder: string;
  /** Of the database. */
  readonly path: string;
  /** Every request that was sent to this store. */
  readonly log: LoggedRequest[] = [];
  token = '';
  /** From the start of its process to the first plant it kept, for each start with a load. */
  readonly firstKeptAfterMs: number[] = [];
  readonly #found = new Set<string>();
  readonly #settings: ServedStoreSettings;
  readonly #port: number;
  #serve: ServeProcess | undefined;
  #load: RandomLoad | undefined;

  private constructor(settings: ServedStoreSettings, folder: string, port: number) {
    this.#settings = settings;
    this.folder = folder;
    this.#port = port;
    this.path = join(folder, 'plants.db');
  }

  /** Starts no service yet. */
  static async make(settings: ServedStoreSettings): Promise<ServedStore> {
    const folder = settings.folder ?? mkdtempSync(join(tmpdir(), 'plant-store-torture-'));
    mkdirSync(folder, { recursive: true });
    return new ServedStore(settings, folder, await freePort());
  }

  get serve(): ServeProcess {
    if (this.#serve === undefined) throw new Error('no service is running');
    return this.#serve;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** @throws with what it said, when it ends instead of taking plants */
  async start(): Promise<void> {
    const { weakness, modules = [], calls } = this.#settings;
    const weakened = weakness === undefined ? [] : [`./weakness/sqlite-${weakness}.ts`];
    const nodeArgs = [...modules, ...weakened].flatMap(module => [
      '--import',
      fileURLToPath(new URL(module, import.meta.url)),
    ]);
    const args = ['--listen', `127.0.0.1:${this.#port}`];
    const env = calls?.environment(this.folder) ?? {};
    this.#serve = await startServe(`sqlite:${this.path}`, args, { env, nodeArgs });
    this.token ||= this.#serve.token;
  }

  /** Starts the service, and a load as {@link RandomLoad} has it; settles when it is under way. */
  async startUnderLoad(seed: number): Promise<void> {
    const startedAt = performance.now();
    const logged = this.log.length;
    await this.start();
    this.#load = new RandomLoad(this.url, this.token, this.log, seed);
    await this.#load.underWay();
    const first = this.log.find(({ answer }, index) => index >= logged && answer?.status === 200);
    this.firstKeptAfterMs.push(first!.answeredAt - startedAt);
  }

  /** Ends it as a power cut or an administrator in a hurry does, and settles when all its clients have noticed. */
  async kill(): Promise<void> {
    await Promise.all([this.serve.stop('SIGKILL'), this.#load?.ended()]);
    this.#serve = undefined;
    this.#load = undefined;
  }

  /** Lets every client have its last answer. */
  async stopLoad(): Promise<void> {
    await this.#load?.stop();
    this.#load = undefined;
  }

  /** Requests whose outcome is not known: answered 5xx, or not at all. */
  get unknown(): LoggedRequest[] {
    return this.log.filter(({ answer }) => answer === undefined || answer.status >= 500);
  }

  get kept(): LoggedRequest[] {
    return this.log.filter(({ answer }) => answer?.status === 200);
  }

  /**
   * Takes back every 200 that came after this moment, at which the power was cut: a machine without power answers nothing.
   * A kernel that goes on after the shutdown of its file system tells some flush of the last moment that it was done,
   * though its blocks were never made part of the file.
   */
  forgetAnswersAfter(moment: number): void {
    for (const request of this.log.filter(({ answeredAt }) => answeredAt > moment)) {
      if (request.answer?.status === 200) request.answer = undefined;
    }
  }

  /** Whether the last answer was a 503. */
  get isRefusing(): boolean {
    return this.log.findLast(({ answer }) => answer !== undefined)?.answer?.status === 503;
  }

  /** Settles when so many plants were kept of those sent from now on. @returns the ms until the first of them was */
  async keeps(count: number): Promise<number> {
    const since = performance.now();
    const begin = this.log.length;
    const kept = (): LoggedRequest[] =>
      this.log.slice(begin).filter(({ sentAt, answer }) => sentAt > since && answer?.status === 200);
    await until(`${count} plants are kept again`, () => kept().length >= count);
    return kept().reduce((first, { answeredAt }) => Math.min(first, answeredAt), Infinity) - since;
  }

  /** How often its log says that it stopped confirming plants. */
  get timesSaidFailed(): number {
    return this.serve.logged().filter(line => FAILED.test(line)).length;
  }

  /**
   * What is stored against what clients were told, and the soundness of the file. No load may be going on.
   *
   * @returns what was not found before
   */
  async faults(when: string): Promise<string[]> {
    const faults = await this.#read().catch(error => [`it cannot be read: ${error.message}`]);
    const newFaults = faults.filter(fault => !this.#found.has(fault));
    for (const fault of newFaults) this.#found.add(fault);
    return newFaults.map(fault => `${when}: ${fault}`);
  }

  async #read(): Promise<string[]> {
    const faults = await faultsIn(`sqlite:${this.path}`, this.log);
    using database = new DatabaseSync(this.path, { readOnly: true });
    const { integrity_check: check } = database.prepare('PRAGMA integrity_check').get() ?? {};
    return check === 'ok' ? faults : [...faults, `integrity_check: ${check}`];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#serve !== undefined) await this.kill();
    if (this.#settings.folder === undefined) rmSync(this.folder, { recursive: true, force: true });
  }
}
