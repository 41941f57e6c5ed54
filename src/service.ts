import type { AddressInfo } from 'node:net';
import { hashToken, makeToken } from './auth/token.ts';
import { TokenDirectory } from './auth/token-directory.ts';
import { docsPage } from './docs-page/docs-page.ts';
import type { AnswerWatcher } from './http/answer.ts';
import { CreatePlant } from './http/create-plant.ts';
import { type AllowedOrigins, CrossOrigin } from './http/cross-origin.ts';
import { Documentation } from './http/documentation.ts';
import { type LoggedRequest, loggedRequest } from './http/logged-request.ts';
import { type ListenAddress, PlantServer } from './http/plant-server.ts';
import { RateLimit, type RateLimitPolicy } from './http/rate-limit.ts';
import { LOG_REPEAT_INTERVAL_MS, LOG_REPEATS_AT_ONCE, STORE_WATCH_INTERVAL_MS } from './ops/limits.ts';
import { Metrics } from './ops/metrics.ts';
import { OpsServer } from './ops/ops-server.ts';
import { ChangeLog, type LogPace, pacedLog } from './ops/paced-log.ts';
import { storeStateOf } from './ops/store-state.ts';
import { databaseAddressOf } from './store/database-url.ts';
import { type CommittingEngine, GroupCommit, type StoreWatcher } from './store/group-commit.ts';
import { openServedStore, type StoreSettings } from './store/open-store.ts';
import { type StorageEngine, StoreRefused, StoreUnavailable } from './store/plant-store.ts';
import { VERSION } from './version.ts';

export type { AllowedOrigins, ListenAddress, RateLimitPolicy };

/** What a service is started with. */
export interface ServiceSettings extends StoreSettings {
  listen: ListenAddress;
  ops: ListenAddress;
  bodyBytesMax: number;
  /** Whether `/docs` and `/openapi.json` are served. */
  docs: boolean;
  /** The pages that may use the service from a browser; undefined for those of its own origin alone. */
  corsOrigins?: AllowedOrigins | undefined;
  /** What each token is granted; undefined for no limit. */
  rateLimit?: RateLimitPolicy | undefined;
  /** Where the service says what an operator must know. */
  log: ServiceLog;
  /** Is told of each request when it is answered. */
  logRequest?: (request: LoggedRequest) => void;
}

/** A log of one line for each message; a pino logger is one. */
export interface ServiceLog {
  info(message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/** An address cannot be listened at. */
export class ListenFailed extends Error {
  readonly address: ListenAddress;
  /** The system's name of the reason, such as `EADDRINUSE`. */
  readonly code: string | undefined;

  constructor(address: ListenAddress, cause: NodeJS.ErrnoException) {
    super(`cannot listen at ${address.host}:${address.port}: ${cause.message}`, { cause });
    this.name = 'ListenFailed';
    this.address = address;
    this.code = cause.code;
  }
}

/** A service that takes plants. */
export interface Service {
  address: AddressInfo;
  opsAddress: AddressInfo;
  /** The token that was made because the store had none and only this machine can reach it; shown once, never logged. */
  firstToken: string | undefined;
  /** Whether the store has any token; without one nobody can send a plant. */
  hasToken: boolean;
  /** What an operator should know of the store, as {@link StorageEngine.check} says it, when the service started. */
  warnings: readonly string[];
  /** Answers what was taken, makes it durable, and lets go of everything. */
  close(): Promise<void>;
}

/**
 * Starts a service: the only place where its parts are put together.
 *
 * @throws {StoreRefused} when the store cannot be opened
 * @throws {ListenFailed} when an address cannot be had
 */
export async function startService(settings: ServiceSettings): Promise<Service> {
  const { log } = settings;
  // Closed in the reverse order of opening, each whatever becomes of the others.
  const opened = new AsyncDisposableStack();
  try {
    const { engine: engineName } = databaseAddressOf(settings.database);
    const metrics = new Metrics({ version: VERSION, engine: engineName });
    const store = await openServedStore(settings);
    opened.defer(() => store.close());
    const { engine } = store;
    const tokens = await TokenDirectory.open(engine, tokensFailed(log));
    opened.defer(() => tokens.close());
    const keeper = new GroupCommit(measured(engine, metrics), confirmationLog(log));
    opened.defer(() => keeper.close());

    let closing: Promise<void> | undefined;
    const storeState = storeStateOf(() => engine.check().catch(throwRawCause), log, LOG_PACE);
    // Once before the first plant is taken: what there is to warn of is in the log from the start.
    const state = await storeState();
    const watch = setInterval(() => void storeState(), STORE_WATCH_INTERVAL_MS);
    opened.defer(() => clearInterval(watch));
    const server = plantServer(settings, tokens, keeper, metrics);
    const ops = new OpsServer(
      {
        storeState,
        engineFigures: () => engine.figures(),
        openConnections: () => server.openConnections(),
        isShuttingDown: () => closing !== undefined,
        isCommitFailing: () => keeper.isFailing,
        load: () => {
          const { plantsUnderWay, plantsUnderWayMax, batchesInFlight } = keeper;
          return { plantsUnderWay, plantsUnderWayMax, batchesInFlight };
        },
        tokens: () => ({ known: tokens.size, areCurrent: tokens.isCurrent }),
      },
      metrics,
    );
    const opsAddress = await listening(settings.ops, ops);
    opened.defer(() => ops.close());
    const address = await listening(settings.listen, server);
    opened.defer(() => server.close());
    // Last, so that a token is never made by a start that then fails and cannot show it.
    const firstToken = tokens.size === 0 ? await makeFirstToken(tokens, engine, settings) : undefined;
    const close = (): Promise<void> => {
      closing ??= opened.disposeAsync();
      return closing;
    };
    const hasToken = firstToken !== undefined || tokens.size > 0;
    const warnings = state.reachable ? state.warnings : [];
    return { address, opsAddress, firstToken: firstToken || undefined, hasToken, warnings, close };
  } catch (error) {
    await opened
      .disposeAsync()
      .catch(cause => log.error({ err: cause }, 'what was opened could not be closed'));
    throw error;
  }
}

const LOG_PACE: LogPace = { linesAtOnce: LOG_REPEATS_AT_ONCE, intervalMs: LOG_REPEAT_INTERVAL_MS };

function plantServer(
  settings: ServiceSettings,
  tokens: TokenDirectory,
  keeper: GroupCommit,
  metrics: Metrics,
): PlantServer {
  const { bodyBytesMax, docs, corsOrigins, rateLimit, log, logRequest } = settings;
  const limit = rateLimit && new RateLimit(rateLimit);
  return new PlantServer(
    new CreatePlant(tokens, keeper, bodyBytesMax, limit),
    requestFailed(log),
    answerWatcher(metrics, logRequest),
    {
      crossOrigin: corsOrigins && new CrossOrigin(corsOrigins),
      documentation: docs ? new Documentation(docsPage()) : undefined,
    },
  );
}

const LOOPBACK = /^(?:localhost|127\.[0-9.]+|::1)$/;

/**
 * Only where nobody but this machine can use it, and where this user of a database may make tokens.
 *
 * @returns the token, empty when another instance made it at the same time; undefined when there is none
 */
async function makeFirstToken(
  tokens: TokenDirectory,
  engine: StorageEngine,
  { listen, log }: ServiceSettings,
): Promise<string | undefined> {
  if (!LOOPBACK.test(listen.host) || (await engine.hasPlants())) return undefined;
  const token = makeToken();
  try {
    const stored = await engine.createToken({
      ...{ hash: hashToken(token), label: 'first' },
      ...{ createdAt: Date.now(), expiresAt: null },
    });
    if (stored === undefined) return '';
    tokens.add(stored);
    return token;
  } catch (cause) {
    if (!(cause instanceof StoreRefused)) throw cause;
    log.info('no first token is made: this service may make none; make one as the owner of the store');
    return undefined;
  }
}

/** The engine, with the size and the time of each commit told to the metrics. */
function measured(engine: StorageEngine, metrics: Metrics): CommittingEngine {
  return {
    commitsInFlightMax: engine.commitsInFlightMax,
    commit: async writes => {
      const beganAt = performance.now();
      try {
        const results = await engine.commit(writes);
        metrics.committed(writes.length, performance.now() - beganAt);
        return results;
      } catch (cause) {
        metrics.commitFailed();
        throw cause;
      }
    },
  };
}

/** Counts every answer, and has it logged where that was asked for. */
function answerWatcher(metrics: Metrics, logRequest: ServiceSettings['logRequest']): AnswerWatcher {
  return (answer, request, socket) => {
    metrics.answered(answer.result, request && performance.now() - request.arrivedAt);
    logRequest?.(loggedRequest(answer, request, socket.remoteAddress));
  };
}

function tokensFailed(log: ServiceLog): (cause: unknown) => void {
  const message = 'the store does not answer for tokens; those known so far stay in force';
  return pacedLog((cause, unsaid) => log.warn({ err: rawCause(cause), unsaid }, message), LOG_PACE);
}

function requestFailed(log: ServiceLog): (cause: unknown) => void {
  const message = 'a request failed in a way the service does not know';
  return pacedLog((cause, unsaid) => log.error({ err: cause, unsaid }, message), LOG_PACE);
}

function confirmationLog(log: ServiceLog): StoreWatcher {
  const confirmation = new ChangeLog(
    cause =>
      log.error(
        { err: rawCause(cause) },
        'the store does not confirm plants; they are answered 503 until it does',
      ),
    () => log.info('the store confirms plants again'),
    LOG_PACE,
  );
  return {
    storeFailed: cause => confirmation.failed(cause),
    storeRecovered: () => confirmation.recovered(),
  };
}

/** The log says what went wrong, and not a second time what was made of it for a person. */
function rawCause(error: unknown): unknown {
  return error instanceof StoreUnavailable ? (error.cause ?? error) : error;
}

function throwRawCause(error: unknown): never {
  throw rawCause(error);
}

async function listening(
  address: ListenAddress,
  server: { listen(address: ListenAddress): Promise<AddressInfo> },
): Promise<AddressInfo> {
  try {
    return await server.listen(address);
  } catch (cause) {
    throw new ListenFailed(address, cause as NodeJS.ErrnoException);
  }
}
