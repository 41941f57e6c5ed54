import type { AddressInfo } from 'node:net';
import { RateLimit, type RateLimitPolicy } from './auth/rate-limit.ts';
import { hashToken, makeToken } from './auth/token.ts';
import { TokenCache } from './auth/token-cache.ts';
import { docsPage } from './docs-page/docs-page.ts';
import { documentationOf } from './docs-page/documentation.ts';
import { CreatePlant } from './http/create-plant.ts';
import { type AllowedOrigins, CrossOrigin } from './http/cross-origin.ts';
import { type ListenAddress, ListenFailed } from './http/listen.ts';
import { PlantServer } from './http/plant-server.ts';
import { STORE_WATCH_INTERVAL_MS } from './ops/limits.ts';
import { loggedRequest } from './ops/logged-request.ts';
import { Metrics } from './ops/metrics.ts';
import { OpsServer } from './ops/ops-server.ts';
import { ChangeLog, rateLimitedLog, type ServiceLog } from './ops/rate-limited-log.ts';
import type { ServiceState } from './ops/readiness.ts';
import { storeWarningsOf } from './ops/store-warnings.ts';
import { databaseAddressOf } from './store/database-url.ts';
import { type CommittingEngine, GroupCommit } from './store/group-commit.ts';
import { openServedStore, type StoreSettings } from './store/open-store.ts';
import { type StorageEngine, StoreRejected, StoreUnavailable } from './store/plant-store.ts';
import { VERSION } from './version.ts';

export { type AllowedOrigins, type ListenAddress, ListenFailed, type RateLimitPolicy };

export interface ServiceSettings extends StoreSettings {
  listen: ListenAddress;
  ops: ListenAddress;
  /** Names of the operations listener, besides localhost and the host in `ops`. */
  opsHosts?: readonly string[] | undefined;
  bodyBytesMax: number;
  /** Whether `/docs` and `/openapi.json` are served. */
  docs: boolean;
  /** The pages that may use the service from a browser; undefined for those of its own origin alone. */
  corsOrigins?: AllowedOrigins | undefined;
  /** What each token is granted; undefined for no limit. */
  rateLimit?: RateLimitPolicy | undefined;
  log: ServiceLog;
  /** Is told of each request when it is answered: fields for the log. */
  logRequest?: (request: object) => void;
}

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
    const metrics = new Metrics(VERSION, databaseAddressOf(settings.database).engine);
    const { engine } = opened.use(await openServedStore(settings));
    const tokensMessage = 'the store does not answer for tokens; those known so far stay in force';
    const tokens = await TokenCache.open(
      engine,
      rateLimitedLog((cause, unsaid) => log.warn({ err: rawCause(cause), unsaid }, tokensMessage)),
    );
    opened.defer(() => tokens.close());
    const writer = new GroupCommit(measured(engine, metrics), confirmationLog(log));
    opened.defer(() => writer.close());

    let closing: Promise<void> | undefined;
    const storeWarnings = storeWarningsOf(() => engine.check(), rawCause, log);
    // Once before the first plant is taken: what there is to warn of is in the log from the start.
    const warnings = (await storeWarnings()) ?? [];
    const watch = setInterval(() => void storeWarnings(), STORE_WATCH_INTERVAL_MS);
    opened.defer(() => clearInterval(watch));
    const server = plantServer(settings, tokens, writer, metrics);
    const readState = async (): Promise<ServiceState> => {
      return {
        // Before the store is waited for, since its answer may come after the plants that wait now.
        ...writer.statistics,
        storeWarnings: await storeWarnings(),
        engine: await engine.statistics(),
        openConnections: await server.openConnections(),
        isShuttingDown: closing !== undefined,
        tokensKnown: tokens.size,
        areTokensCurrent: tokens.isCurrent,
      };
    };
    const ops = new OpsServer(readState, metrics, [settings.ops.host, ...(settings.opsHosts ?? [])]);
    const opsAddress = await ops.listen(settings.ops);
    opened.defer(() => ops.close());
    const address = await server.listen(settings.listen);
    opened.defer(() => server.close());
    // Last, so that a token is never made by a start that then fails and cannot show it.
    const firstToken = tokens.size === 0 ? await makeFirstToken(tokens, engine, settings) : undefined;
    const close = (): Promise<void> => {
      closing ??= opened.disposeAsync();
      return closing;
    };
    const hasToken = firstToken !== undefined || tokens.size > 0;
    return { address, opsAddress, firstToken: firstToken || undefined, hasToken, warnings, close };
  } catch (error) {
    await opened
      .disposeAsync()
      .catch(cause => log.error({ err: cause }, 'what was opened could not be closed'));
    throw error;
  }
}

function plantServer(
  settings: ServiceSettings,
  tokens: TokenCache,
  writer: GroupCommit,
  metrics: Metrics,
): PlantServer {
  const { bodyBytesMax, docs, corsOrigins, rateLimit, log, logRequest } = settings;
  return new PlantServer({
    createPlant: new CreatePlant(tokens, writer, bodyBytesMax, rateLimit && new RateLimit(rateLimit)),
    crossOrigin: corsOrigins && new CrossOrigin(corsOrigins),
    documentation: docs ? documentationOf(docsPage()) : undefined,
    failed: rateLimitedLog((cause, unsaid) =>
      log.error({ err: cause, unsaid }, 'a request failed in a way the service does not know'),
    ),
    onResponse: (response, request, socket) => {
      metrics.countResponse(response.result, request && performance.now() - request.arrivedAt);
      logRequest?.(loggedRequest(response, request, socket.remoteAddress));
    },
  });
}

const LOOPBACK = /^(?:localhost|127\.[0-9.]+|::1)$/;

/**
 * Only where nobody but this machine can use it, and where this user of a database may make tokens.
 *
 * @returns the token, empty when another instance made it at the same time; undefined when there is none
 */
async function makeFirstToken(
  tokens: TokenCache,
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
    if (!(cause instanceof StoreRejected)) throw cause;
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

function confirmationLog(log: ServiceLog): ChangeLog {
  const message = 'the store does not confirm plants; they are answered 503 until it does';
  return new ChangeLog(
    cause => log.error({ err: rawCause(cause) }, message),
    () => log.info('the store confirms plants again'),
  );
}

/** The log says what went wrong, and not a second time what was made of it for a person. */
function rawCause(error: unknown): unknown {
  return error instanceof StoreUnavailable ? (error.cause ?? error) : error;
}
