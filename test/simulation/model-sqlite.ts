import { EventEmitter } from 'node:events';
import type { IntactRevision } from '../../src/core/commit/plant-revision.ts';
import { decide, type LatestRevision, storedResult } from '../../src/core/commit/write-decision.ts';
import type { CheckpointProgress } from '../../src/engines/sqlite/checkpoints/checkpoint-thread.ts';
import { type PackedBatch, packResults, unpackWrites } from '../../src/engines/sqlite/packed-batch.ts';
import type { CommittedBatch } from '../../src/engines/sqlite/revision-table.ts';
import { StoreFileReplaced } from '../../src/engines/sqlite/sqlite-errors.ts';
import type { CalledWorker, StartWorker } from '../../src/engines/sqlite/threads/called-thread.ts';
import { sendReply } from '../../src/engines/sqlite/threads/reply-to-calls.ts';
import { ShortReply } from '../../src/engines/sqlite/threads/short-reply.ts';
import { type Reply, replyTo } from '../../src/engines/sqlite/threads/thread-reply.ts';
import { WAL_RESTART_PAGES, WRITER_CHECKPOINT_PAGES_MAX } from '../../src/engines/sqlite/wal-limits.ts';
import type { WriterCall } from '../../src/engines/sqlite/writer-thread.ts';
import { count, type Happened } from './part.ts';
import type { Scheduler } from './scheduler.ts';

/** Longest times of half an operation, of a message, and from the end of a thread to its `exit` event. */
const WORK_MAX_MS = 5;
const MESSAGE_MAX_MS = 5;
const EXIT_MAX_MS = 30;
/** Longest time of half an operation while there is trouble. */
const HANG_MAX_MS = 500;
/** The message of an error that only a thread has that was ended within an operation. */
export const TERMINATED = 'terminated within an operation';
/** The message of an error of SQLite, and of one of our own code. */
export const FAILS = 'the simulated operation fails';
const DISK_FULL = 13;
const DAMAGED = 11;
/** The longest short reply is 256 bytes. */
const SEARCH_REPLY_LENGTHS = [1, 200, 300];

interface ModelRevision extends IntactRevision {
  storedAt: number;
  /** Position in the order of all commits. */
  commit: number;
}

/** The files of a store, the threads that use it, and what goes wrong. */
export class ModelSqlite {
  readonly scheduler: Scheduler;
  readonly happened: Happened;
  /** What the disk has: the revisions of each plant. A commit never gets lost. */
  readonly disk = new Map<bigint, ModelRevision[]>();
  commits = 0;
  /** Commits that the last checkpoint has copied. */
  copiedCommits = 0;
  /** Threads without an `error` event or `exit` event so far. */
  readonly running = new Set<ModelThread>();
  started = 0;
  /** How often a file was replaced. */
  replacements = 0;
  /** The checkpoint threads that have the files open, and how often a file was replaced before. */
  readonly checkpointFiles = new Map<ThreadProgram, number>();
  troubleUntilMs = 0;

  constructor(scheduler: Scheduler, happened: Happened) {
    this.scheduler = scheduler;
    this.happened = happened;
  }

  get hasTrouble(): boolean {
    return this.scheduler.now() < this.troubleUntilMs;
  }

  /** Whether something goes wrong now that has this probability while there is trouble. */
  goesWrong(percent: number, what: string): boolean {
    const isWrong = this.hasTrouble && this.scheduler.happens(percent);
    if (isWrong) count(this.happened, what);
    return isWrong;
  }

  workMsMax(): number {
    return this.goesWrong(10, 'an operation hangs') ? HANG_MAX_MS : WORK_MAX_MS;
  }

  readonly startWorker: StartWorker = (program, { workerData }) => {
    if (this.goesWrong(15, 'a thread cannot be started')) throw new Error('no more threads');
    this.started++;
    return new ModelThread(this, this.#programOf(program), new ShortReply(workerData.shortReplyMemory));
  };

  /**
   * Opens the current files, unless a checkpoint thread uses the ones before. The connections of a
   * process share the state of the write-ahead log.
   */
  openFiles(): number {
    return Math.min(this.replacements, ...this.checkpointFiles.values());
  }

  #programOf(program: URL): ThreadProgram {
    const name = program.pathname.split('/').at(-1);
    if (name === 'writer-thread.ts') return writerProgram(this) as ThreadProgram;
    if (name === 'checkpoint-thread.ts') return checkpointProgram(this);
    return call => {
      const { scheduler } = this;
      if (this.goesWrong(10, 'a search fails')) throw sqliteError(DISK_FULL, `${FAILS}: ${call}`);
      return `${call}`.padEnd(scheduler.pick(...SEARCH_REPLY_LENGTHS));
    };
  }
}

type ThreadProgram = (call: unknown) => unknown;

/**
 * A thread that replies to the calls of a `CalledThread`, in their order, and dies at any step. As
 * with Node, its messages arrive before its `exit` event, but its `error` event may overtake them.
 *
 * The simulation has one thread. So a caller that blocks gets its reply at once, or its wait ends.
 */
class ModelThread extends EventEmitter implements CalledWorker {
  readonly #model: ModelSqlite;
  readonly #resultOf: ThreadProgram;
  readonly #shortReply: ShortReply;
  readonly #calls: unknown[] = [];
  /** The call in progress, until it takes effect. */
  #executing: { call: unknown } | undefined;
  #isWorking = false;
  #isDying = false;
  /** Messages that the caller has not received yet. */
  readonly #messages: Reply<unknown>[] = [];
  readonly #exited = Promise.withResolvers<void>();

  constructor(model: ModelSqlite, resultOf: ThreadProgram, shortReply: ShortReply) {
    super();
    this.#model = model;
    this.#resultOf = resultOf;
    this.#shortReply = shortReply;
    model.running.add(this);
    if (model.goesWrong(10, 'a thread dies at its start')) this.#later(EXIT_MAX_MS, () => this.#die());
  }

  postMessage(call: unknown): void {
    if (this.#isDying) return;
    this.#calls.push(structuredClone(call));
    // The caller may wait for the reply, and then does so now.
    this.#shortReply.expect();
    if (this.#isWorking || this.#calls.length > 1 || this.#model.scheduler.happens(50)) {
      this.#shortReply.wait(0);
      this.#work();
      return;
    }
    this.#send(replyTo(this.#resultOf, this.#calls.shift()));
    queueMicrotask(() => {
      const untaken = this.#shortReply.wait(0);
      if (untaken === undefined) count(this.#model.happened, 'a caller waits for its reply');
      else this.#post({ kind: 'result', result: untaken });
    });
  }

  /** The operation in progress may still take effect, and may end with any error. */
  terminate(): Promise<void> {
    if (!this.#isDying) {
      if (this.#isWorking) {
        count(this.#model.happened, 'a thread is ended within an operation');
        this.#send({ kind: 'internalError', cause: new Error(TERMINATED) });
      }
      this.#end();
    }
    return this.#exited.promise;
  }

  #later(msMax: number, action: () => void): void {
    this.#model.scheduler.later(0, msMax, action);
  }

  #work(): void {
    if (this.#isWorking || this.#calls.length === 0) return;
    this.#isWorking = true;
    this.#executing = { call: this.#calls.shift() };
    this.#later(this.#model.workMsMax(), () => this.#execute());
  }

  #execute(): void {
    const model = this.#model;
    if (this.#isDying) return;
    if (model.goesWrong(5, 'a thread dies within an operation')) {
      this.#die();
      return;
    }
    const { call } = this.#executing!;
    this.#executing = undefined;
    const reply = replyTo(this.#resultOf, call);
    if (model.goesWrong(5, 'a thread dies before its reply')) this.#die();
    else this.#later(model.workMsMax(), () => this.#reply(reply));
  }

  #reply(reply: Reply<unknown>): void {
    if (this.#isDying) return;
    this.#send(reply);
    this.#isWorking = false;
    if (this.#model.goesWrong(5, 'a thread dies after its reply')) this.#die();
    else this.#work();
  }

  #send(reply: Reply<unknown>): void {
    sendReply(this.#shortReply, reply, message => this.#post(message));
  }

  #post(message: Reply<unknown>): void {
    this.#messages.push(message);
    this.#later(MESSAGE_MAX_MS, () => this.#deliver());
  }

  #deliver(): void {
    const message = this.#messages.shift();
    if (message !== undefined) this.emit('message', message);
  }

  #die(): void {
    if (this.#isDying) return;
    if (this.#model.scheduler.happens(30)) {
      this.#end();
      return;
    }
    this.#isDying = true;
    this.#later(MESSAGE_MAX_MS, () => {
      if (this.#messages.length > 0) count(this.#model.happened, 'an error overtakes a reply');
      this.#model.running.delete(this);
      this.emit('error', new Error('the simulated thread dies'));
      this.#end();
    });
  }

  #end(): void {
    this.#isDying = true;
    this.#later(EXIT_MAX_MS, () => {
      // A commit in progress is durable, or it is not.
      if (this.#executing !== undefined && this.#model.scheduler.happens(50))
        replyTo(this.#resultOf, this.#executing.call);
      while (this.#messages.length > 0) this.#deliver();
      this.#model.running.delete(this);
      this.#model.checkpointFiles.delete(this.#resultOf);
      this.emit('exit', 1);
      this.#exited.resolve();
    });
  }
}

function sqliteError(errcode: number, message = FAILS): Error {
  return Object.assign(new Error(message), { errcode });
}

/** What the writer thread does, without files. */
function writerProgram(model: ModelSqlite): (call: WriterCall) => unknown {
  const { scheduler } = model;
  let files: number | undefined;
  let isFileReplaced = false;
  const reject = (): void => {
    files ??= model.openFiles();
    isFileReplaced ||= files !== model.replacements;
    if (isFileReplaced) throw new StoreFileReplaced('a simulated file was replaced');
    if (model.goesWrong(5, 'the disk is full')) throw sqliteError(DISK_FULL);
    if (model.goesWrong(2, 'the files are damaged')) throw sqliteError(DAMAGED);
    if (model.goesWrong(2, 'an internal error')) throw new TypeError(FAILS);
  };
  return ([operation, ...args]) => {
    if (operation === 'reopen') {
      count(model.happened, 'the writer opens the files again');
      isFileReplaced = false;
      files = undefined;
    }
    if (operation === 'reopen' || operation === 'close') return undefined;
    reject();
    if (operation === 'commit') {
      const committed = commit(model, args as unknown as PackedBatch);
      if (model.goesWrong(5, 'a durable commit fails')) throw sqliteError(DISK_FULL);
      return packResults(committed);
    }
    if (operation === 'schemaSteps') return { before: 1, now: 1 };
    if (operation === 'tokenFingerprints') return new Map([[0, 'fingerprint']]);
    if (operation === 'readRows' || operation === 'writeRows') return [[scheduler.random(10)]];
    return undefined;
  };
}

/** Inserts the plants in one transaction. An id that is a multiple of 7 rejects another content. */
function commit(model: ModelSqlite, batch: PackedBatch): CommittedBatch {
  const { scheduler, disk } = model;
  const number = ++model.commits;
  const committed: CommittedBatch = { results: [], flushMs: scheduler.pick(0.1, 5) };
  for (const write of unpackWrites(batch)) {
    const { id } = write.plant;
    const revisions = disk.getOrInsertComputed(id, () => []);
    const stored = revisions.at(-1);
    const latest: LatestRevision = stored === undefined ? { kind: 'none' } : { kind: 'stored', stored };
    const decision = decide(write, latest, id % 7n === 0n ? 'reject' : 'revise', scheduler.wallNow());
    if (decision.kind === 'insert') {
      revisions.push({ ...decision.revision, storedAt: scheduler.timestamp(), commit: number });
      committed.results.push(storedResult(decision.revision));
    } else committed.results.push(decision.result);
  }
  return committed;
}

function checkpointProgram(model: ModelSqlite): ThreadProgram {
  const { scheduler } = model;
  const program: ThreadProgram = (call): CheckpointProgress | undefined => {
    if (call === 'close' || model.goesWrong(10, 'a checkpoint fails')) {
      model.checkpointFiles.delete(program);
      if (call === 'close') return undefined;
      throw sqliteError(DISK_FULL);
    }
    model.checkpointFiles.getOrInsertComputed(program, () => model.openFiles());
    model.copiedCommits = model.commits;
    const walPages = scheduler.pick(1, WAL_RESTART_PAGES);
    return {
      walPages,
      copiedPages: Math.max(0, walPages - scheduler.random(2 * WRITER_CHECKPOINT_PAGES_MAX)),
    };
  };
  return program;
}
