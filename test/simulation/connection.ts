import assert from 'node:assert/strict';
import type { AddressInfo, Server } from 'node:net';
import type {
  NewPlantWrite,
  NotConfirmed,
  PlantQueue,
  WriteResult,
} from '../../src/core/commit/plant-commits.ts';
import { CreatePlant } from '../../src/core/create-plant.ts';
import { contentResponse } from '../../src/core/response.ts';
import { RateLimit } from '../../src/core/tokens/rate-limit.ts';
import { hashToken } from '../../src/core/tokens/token.ts';
import type { TokenCache, TokenLookup } from '../../src/core/tokens/token-cache.ts';
import type { ReservedAddress } from '../../src/server/listen.ts';
import { BodyShare, LONG_BODIES_MAX_BYTES, LongBodyMemory } from '../../src/server/long-bodies.ts';
import { PlantServer, SHUTDOWN_GRACE_MS } from '../../src/server/plant-server.ts';
import { SHUTDOWN_MS } from '../../src/server/timeouts.ts';
import { Client } from './connection-client.ts';
import type { RunState } from './connection-oracle.ts';
import {
  OTHER_TOKEN,
  PAGE,
  Requests,
  type SentRequest,
  SIMULATED_BODY_MAX_BYTES,
  VALID_TOKEN,
} from './connection-requests.ts';
import { ModelLoop } from './model-socket.ts';
import { count, type Happened, type Part } from './part.ts';
import { Scheduler } from './scheduler.ts';

/** The stop of a service whose clients and store behave takes at most so long. */
const PROMPT_STOP_MS = SHUTDOWN_GRACE_MS + 1_000;
const LOOKUP_MAX_MS = 1_000;
/** With more plants in flight, or so many bytes and one more plant, no request of a connection is read. */
const IN_FLIGHT_MAX = 1_024;
const IN_FLIGHT_MAX_BYTES = 256 * 1024 + SIMULATED_BODY_MAX_BYTES;
const VALID_TOKEN_ID = 1;
const OTHER_TOKEN_ID = 2;
const TOKEN_IDS = new Map([
  [hashToken(VALID_TOKEN), VALID_TOKEN_ID],
  [hashToken(OTHER_TOKEN), OTHER_TOKEN_ID],
]);
const DOCUMENTATION = { pages: new Map([['/docs', contentResponse('text/plain', PAGE)]]), helpFields: {} };

/** How a store answers: one result after the other, or those of a batch at once. */
interface StoreManner {
  isBatching: boolean;
  settledMsMax: number;
  /** In percent. */
  never: number;
  rejects: number;
}

/** The queue of a store that settles plants early, late or never. */
class ModelQueue implements Pick<PlantQueue, 'write'> {
  readonly #scheduler: Scheduler;
  readonly #run: RunState;
  readonly #requests: Requests;
  readonly #manner: StoreManner;
  #batch: (() => void)[] = [];
  fault: string | undefined;

  constructor(scheduler: Scheduler, run: RunState, requests: Requests, manner: StoreManner) {
    this.#scheduler = scheduler;
    this.#run = run;
    this.#requests = requests;
    this.#manner = manner;
  }

  write(write: NewPlantWrite): Promise<WriteResult | NotConfirmed> {
    const { id } = write.plant;
    const request = this.#requests.byId.get(id);
    const fault = request === undefined ? 'was not sent' : this.#faultOf(request, write);
    if (request === undefined || fault !== undefined) {
      this.fault ??= `plant ${id} ${fault}`;
      return Promise.resolve({ kind: 'notConfirmed', error: 'busy' });
    }
    const { inFlight } = request;
    const bodyBytes = request.bytes.length - request.headersBytes;
    inFlight.bytes += bodyBytes;
    if (++inFlight.plants === IN_FLIGHT_MAX) count(this.#run.happened, 'the most plants in flight');
    const isFull = inFlight.plants > IN_FLIGHT_MAX || inFlight.bytes > IN_FLIGHT_MAX_BYTES;
    if (isFull) this.fault ??= `plant ${id} is read, although too many are in flight`;
    this.#run.written.set(id, undefined);
    return new Promise(resolve => {
      const settle = (): void => {
        const result = this.#result();
        inFlight.plants--;
        inFlight.bytes -= bodyBytes;
        this.#run.written.set(id, { result, atMs: this.#scheduler.now() });
        resolve(result);
      };
      this.#schedule(settle);
    });
  }

  /** @returns why the plant of a request must not be written now */
  #faultOf(request: SentRequest, { plant: { id, name }, recordedBy }: NewPlantWrite): string | undefined {
    const { written, answered, revokedAtMs } = this.#run;
    const now = this.#scheduler.now();
    if (request.expected !== 'plant' || request.name !== name) return 'is of a request that is none';
    if (written.has(id)) return 'is written twice';
    if (answered.has(id)) return 'is written after its response';
    if (request.wholeAtMs > now) return 'is written before its request is whole';
    if (request.closedAtMs <= now) return 'is written after the end of its connection';
    if (recordedBy === OTHER_TOKEN_ID && revokedAtMs <= now) return 'is written with a revoked token';
    return undefined;
  }

  #schedule(settle: () => void): void {
    const scheduler = this.#scheduler;
    const { isBatching, settledMsMax, never } = this.#manner;
    if (scheduler.happens(never)) count(this.#run.happened, 'a plant that is never settled');
    else if (!isBatching) scheduler.later(0, settledMsMax, settle);
    else if (this.#batch.push(settle) === 1)
      scheduler.later(0, settledMsMax, () => {
        for (const each of this.#batch.splice(0)) each();
      });
  }

  #result(): WriteResult | NotConfirmed {
    const scheduler = this.#scheduler;
    if (scheduler.happens(this.#manner.rejects)) {
      const error = scheduler.pick('busy', 'storeUnavailable', 'idTaken');
      return error === 'idTaken' ? { kind: 'rejected', error } : { kind: 'notConfirmed', error };
    }
    return {
      kind: 'confirmed',
      outcome: scheduler.pick('created', 'unchanged', 'revised'),
      revision: 1,
    };
  }
}

/** The cache of two tokens. It is stale at times: then lookups wait, and may fail. */
class ModelTokens implements Pick<TokenCache, 'get' | 'lookUp' | 'lookUpCached'> {
  readonly #scheduler: Scheduler;
  readonly #run: RunState;
  readonly #stalePercent: number;

  constructor(scheduler: Scheduler, run: RunState, stalePercent: number) {
    this.#scheduler = scheduler;
    this.#run = run;
    this.#stalePercent = stalePercent;
  }

  get(hash: string): { id: number; label: string } | undefined {
    const id = TOKEN_IDS.get(hash);
    return id === undefined ? undefined : { id, label: `${id}` };
  }

  lookUpCached(hash: string): number | undefined {
    return this.#scheduler.happens(this.#stalePercent) ? undefined : this.#valid(hash);
  }

  async lookUp(hash: string): Promise<TokenLookup> {
    const waits = !TOKEN_IDS.has(hash) || this.#scheduler.happens(this.#stalePercent);
    if (waits) await this.#scheduler.pause(0, this.#scheduler.pick(10, LOOKUP_MAX_MS));
    const fails = waits && this.#run.areTokensUnavailable && this.#scheduler.happens(30);
    if (fails) return { kind: 'storeUnavailable' };
    const id = this.#valid(hash);
    return id === undefined ? { kind: 'rejected' } : { kind: 'valid', id };
  }

  #valid(hash: string): number | undefined {
    const id = TOKEN_IDS.get(hash);
    return id === OTHER_TOKEN_ID && this.#run.revokedAtMs <= this.#scheduler.now() ? undefined : id;
  }
}

/** The listening socket of the service. It ends when all its connections are closed. */
class ModelAddress {
  readonly #openConnections: () => number;
  #server: Server | undefined;
  #onClosed: (() => void) | undefined;

  constructor(openConnections: () => number) {
    this.#openConnections = openConnections;
  }

  async handOver(server: Server): Promise<AddressInfo> {
    this.#server = server;
    return { address: '', family: '', port: 0 };
  }

  accept(client: Client): void {
    if (this.#onClosed !== undefined) return;
    client.socket.once('close', () => process.nextTick(() => this.checkClosed()));
    this.#server!.emit('connection', client.accepted);
  }

  close(onClosed: () => void): void {
    this.#onClosed = onClosed;
    this.checkClosed();
  }

  checkClosed(): void {
    if (this.#openConnections() === 0) this.#onClosed?.();
  }
}

/** Clients, a server and its store, on virtual time. */
class Simulation {
  readonly #scheduler: Scheduler;
  readonly #loop: ModelLoop;
  readonly #run: RunState;
  readonly #requests: Requests;
  readonly #queue: ModelQueue;
  readonly #server: PlantServer;
  readonly #address: ModelAddress;
  readonly #clients: Client[] = [];
  /** Whether neither clients nor the store give the service a cause to wait. */
  readonly #allBehave: boolean;
  readonly #longBodies = new LongBodyMemory();
  /** Memory for long bodies that others have. */
  readonly #otherBodies = new BodyShare(this.#longBodies);
  #fault: unknown;

  constructor(seed: number, happened: Happened) {
    const scheduler = new Scheduler(seed);
    this.#scheduler = scheduler;
    this.#allBehave = scheduler.happens(15);
    this.#loop = new ModelLoop(scheduler, scheduler.pick(0, 0, 5, 50));
    const isMemoryTight = scheduler.happens(10);
    if (isMemoryTight) this.#otherBodies.grow(LONG_BODIES_MAX_BYTES - scheduler.pick(20_000, 60_000));
    const now = scheduler.now();
    this.#run = {
      happened,
      written: new Map(),
      answered: new Set(),
      isMemoryTight,
      isRateLimited: scheduler.happens(10),
      areTokensUnavailable: scheduler.happens(10),
      revokedAtMs: scheduler.happens(20) ? now + scheduler.random(5_000) : Infinity,
      stopAtMs: Infinity,
    };
    this.#requests = new Requests(scheduler);
    this.#queue = new ModelQueue(scheduler, this.#run, this.#requests, {
      isBatching: scheduler.happens(50),
      settledMsMax: this.#allBehave ? 20 : scheduler.pick(0, 5, 50, 3_000),
      never: this.#allBehave ? 0 : scheduler.pick(0, 0, 0, 5),
      rejects: scheduler.pick(0, 10),
    });
    const stalePercent = this.#allBehave ? 0 : scheduler.pick(0, 0, 30, 100);
    const tokens = new ModelTokens(scheduler, this.#run, stalePercent) as unknown as TokenCache;
    this.#server = this.#open(tokens);
    this.#address = new ModelAddress(() => this.#server.openConnections);
  }

  #open(tokens: TokenCache): PlantServer {
    const rateLimit = this.#run.isRateLimited ? new RateLimit({ requests: 2, windowSeconds: 5 }) : undefined;
    const parts = {
      tokens,
      queue: this.#queue as unknown as PlantQueue,
      bodyBytesMax: SIMULATED_BODY_MAX_BYTES,
      rateLimit,
      validators: [],
      wrappers: [],
    };
    const createPlant = new CreatePlant(parts, this.#loop);
    const context = {
      createPlant,
      documentation: DOCUMENTATION,
      corsOrigins: this.#requests.origins,
      observers: [],
      varyingField: 'x-request-id',
      trustedProxies: undefined,
      onInternalError: (cause: unknown) => {
        this.#fault ??= cause;
      },
    };
    return new PlantServer(context, this.#loop, this.#longBodies);
  }

  async run(): Promise<number> {
    const scheduler = this.#scheduler;
    const runMs = scheduler.pick(1_000, 5_000, 30_000, 100_000);
    const clients = 1 + scheduler.random(3);
    let stopMs: number | undefined;
    void scheduler.start(async () => {
      await this.#server.listen(this.#address as unknown as ReservedAddress);
      for (let index = 0; index < clients; index++) {
        scheduler.later(0, index === 0 ? 0 : 100, () => this.#connect());
      }
      await scheduler.pause(200, Math.max(200, runMs));
      this.#run.stopAtMs = scheduler.now();
      await this.#server.close();
      stopMs = scheduler.now() - this.#run.stopAtMs;
      if (this.#allBehave) count(this.#run.happened, 'the prompt stop');
      for (const { socket } of this.#clients)
        if (socket.pauses > 0) count(this.#run.happened, 'reading is paused');
    });
    try {
      await scheduler.runUntil(Number.MAX_SAFE_INTEGER, () => this.#check());
    } finally {
      this.#otherBodies[Symbol.dispose]();
    }
    assert.ok(stopMs !== undefined && stopMs <= SHUTDOWN_MS + 100, `the stop takes ${stopMs} ms`);
    if (this.#allBehave) assert.ok(stopMs <= PROMPT_STOP_MS, `the stop takes ${stopMs} ms`);
    assert.equal(this.#server.openConnections, 0);
    this.#checkMemory();
    return scheduler.steps;
  }

  #connect(): void {
    const client = new Client(this.#scheduler, this.#loop, this.#run, this.#requests, this.#allBehave);
    this.#clients.push(client);
    this.#address.accept(client);
    void this.#scheduler.start(() => client.run());
  }

  #check(): void {
    if (this.#fault !== undefined) throw this.#fault;
    if (this.#queue.fault !== undefined) throw new Error(this.#queue.fault);
    for (const client of this.#clients) client.check();
    const open = this.#clients.filter(({ socket }) => !socket.destroyed).length;
    const isQuiet = this.#clients.every(({ oracle }) => oracle.isQuiet);
    if (isQuiet && open === this.#server.openConnections && !this.#run.isMemoryTight) this.#checkMemory();
  }

  /** All memory for long bodies must be free. */
  #checkMemory(): void {
    using all = new BodyShare(this.#longBodies);
    assert.ok(all.grow(LONG_BODIES_MAX_BYTES), 'memory for long bodies is not given back');
  }
}

export const connection: Part = {
  name: 'connection',
  simulate: (seed, happened) => new Simulation(seed, happened).run(),
};
