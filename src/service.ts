import type { AddressInfo } from 'node:net';
import type { PlantCommits, PlantQueue } from './core/commit/plant-commits.ts';
import { StoreRejected } from './core/commit/store-errors.ts';
import { CreatePlant } from './core/create-plant.ts';
import type { Attached, ResponseObserver } from './core/extension-points.ts';
import { RateLimit, type RateLimitPolicy } from './core/tokens/rate-limit.ts';
import { hashToken, makeToken } from './core/tokens/token.ts';
import { TokenCache } from './core/tokens/token-cache.ts';
import { openSearch, openServedStore, type ServedStore, type StoreSettings } from './engines/open-store.ts';
import { type StorageEngine, schemaUpdateOf } from './engines/storage-engine.ts';
import { Activity } from './operate/console/activity.ts';
import { makeConsoleCode } from './operate/console/console-code.ts';
import { type ConsoleParts, OperatorConsole, type ShownSetting } from './operate/console/operator-console.ts';
import { RejectedRequests } from './operate/console/rejected-requests.ts';
import { type Samples, startSamples } from './operate/console/samples.ts';
import { KnownDamage } from './operate/known-damage.ts';
import { loggedRequest } from './operate/logged-request.ts';
import { Metrics } from './operate/metrics.ts';
import { monitoredCommits } from './operate/monitored-commits.ts';
import { opsServer } from './operate/ops-server.ts';
import { errorLog, rateLimitedLog, type ServiceLog } from './operate/rate-limited-log.ts';
import type { ServiceState } from './operate/readiness.ts';
import { RecentRates } from './operate/recent-rates.ts';
import { storeWarningsOf } from './operate/store-warnings.ts';
import { documentationOf } from './pages/docs/docs-page.ts';
import { trustedProxiesOf } from './server/client-address.ts';
import type { AllowedOrigins } from './server/cross-origin.ts';
import { type ListenAddress, ListenFailed, ReservedAddress } from './server/listen.ts';
import { PlantServer } from './server/plant-server.ts';
import { VERSION } from './version.ts';

/** Interval of the store checks that log warnings, so that the log does not depend on `/readyz`. */
const STORE_WATCH_INTERVAL_MS = 10_000;
const COMMITS_ASSESSED_INTERVAL_MS = 1_000;
const RATES_ASSESSED_INTERVAL_MS = 1_000;

export {
  type AllowedOrigins,
  type ListenAddress,
  ListenFailed,
  type RateLimitPolicy,
  type ShownSetting,
  trustedProxiesOf,
};

export interface ServiceSettings extends StoreSettings {
  listen: ListenAddress;
  ops: ListenAddress;
  /** Names of the operations listener, besides localhost and the host in `ops`. */
  opsHosts?: readonly string[] | undefined;
  bodyBytesMax: number;
  /** Proxies whose X-Forwarded-For names the client; undefined: none. */
  trustedProxies?: readonly string[] | undefined;
  /** Whether `/docs` and `/openapi.json` are served. */
  docs: boolean;
  /** The address that both show, without a final slash; undefined: that of the request. */
  publicUrl?: string | undefined;
  /** Origins whose pages may send requests; undefined: only that of the service. */
  corsOrigins?: AllowedOrigins | undefined;
  /** Limit of each token; undefined: no limit. */
  rateLimit?: RateLimitPolicy | undefined;
  /** They are opened in this order, before the service accepts requests. */
  extras?: readonly OpenExtra[];
  /** What the console shows of the service; undefined: no console. */
  console?: { database: string; settings: readonly ShownSetting[] } | undefined;
  /** Called before the store has the first token. If it returns false, the store gets none. */
  handOverFirstToken: (token: string) => boolean;
  log: ServiceLog;
  /** Called with the log fields of each request, after its response. */
  logRequest?: (request: object) => void;
}

/** What an extra uses of the service. */
export interface ExtraContext {
  tokens: TokenCache;
  engine: StorageEngine;
  log: ServiceLog;
}

/**
 * Opens an extra.
 *
 * @param opened closes what is added to it, after everything that the extra is attached to
 */
export type OpenExtra = (context: ExtraContext, opened: AsyncDisposableStack) => Promise<Partial<Attached>>;

export interface Service {
  address: AddressInfo;
  opsAddress: AddressInfo;
  /** Token of a new store that only this machine can reach. It is never logged. */
  firstToken: string | undefined;
  /** Whether the store has any token, or other tokens are valid; otherwise nobody can send a plant. */
  hasToken: boolean;
  /** Makes a one-time code for the console; undefined if it is off. */
  makeConsoleCode: (() => Promise<string>) | undefined;
  /** Warnings of {@link PlantCommits.check} at the start, for the operator. */
  warnings: readonly string[];
  /** Completes the accepted requests, makes their plants durable, and releases all resources. */
  close(): Promise<void>;
}

/**
 * Starts a service. This is the only place that connects its parts.
 *
 * @throws {StoreRejected} when the store cannot be opened
 * @throws {ListenFailed} when the service cannot listen on an address
 */
export async function startService(settings: ServiceSettings): Promise<Service> {
  const { log } = settings;
  // The stack closes its parts in reverse order, and continues when one of them fails.
  const opened = new AsyncDisposableStack();
  try {
    const metrics = new Metrics(VERSION, settings.database.engine);
    // Before the store: a start that fails here leaves no new store.
    const reservedOps = opened.use(await ReservedAddress.reserve(settings.ops));
    const reserved = opened.use(await ReservedAddress.reserve(settings.listen));
    const engine = opened.use(await openStore(settings));
    const damage = new KnownDamage(engine, log);
    const restartedAt = engine.isAfterCrash ? Date.now() : null;
    const tokens = await openTokens(engine, damage, log);
    opened.defer(() => tokens.close());
    const attached = await openExtras(settings, { tokens, engine, log }, opened);
    const commits = monitoredCommits(engine, metrics, damage, log);
    opened.use(setInterval(() => void commits.assess(), COMMITS_ASSESSED_INTERVAL_MS));
    const queue = engine.openQueue(observedCommit(commits.commit, attached.observers));
    opened.defer(() => queue.close());

    let closing: Promise<void> | undefined;
    const storeWarnings = storeWarningsOf(commits.check, log);
    // The first check runs before the first plant, so the log begins with the warnings.
    const { warnings = [] } = await storeWarnings();
    opened.use(setInterval(() => void storeWarnings(), STORE_WATCH_INTERVAL_MS));
    const observed = { rejected: new RejectedRequests(), activity: new Activity() };
    const server = plantServer(settings, tokens, queue, {
      ...attached,
      observers: [...ownObservers(settings, metrics, observed), ...attached.observers],
    });
    const readState = async (): Promise<ServiceState> => ({
      // Read before the awaits below: a slow store would hide the plants that wait now.
      ...queue.statistics,
      commits,
      tokens,
      store: await storeWarnings(),
      engine: await engine.statistics(),
      isDamaged: damage.isKnown,
      lastRuns: damage.lastRuns,
      restartedAt,
      rates: metrics.rates,
      commitSeconds: metrics.commitSeconds,
      warnings: [
        ...attached.verifiers.flatMap(verifier => verifier.fault() ?? []),
        ...attached.wrappers.map(({ warning }) => warning),
      ],
      openConnections: server.openConnections,
      isShuttingDown: closing !== undefined,
    });
    const operatorConsole =
      settings.console &&
      samples &&
      new OperatorConsole({
        engine,
        damage,
        ...observed,
        log,
        version: VERSION,
        ...settings.console,
        isFirstStart: engine.schemaSteps.before === 0,
        samples,
        search: opened.use(await openSearch(settings.database)),
        docsUrl: docsUrlOf(settings, reserved),
        onToken: token => tokens.add(token),
        labelOf: tokenId => tokens.labelOf(tokenId),
        onError: damage.observed('a search', errorLog(log, 'a request of the console failed')),
      });
    const hostNames = [settings.ops.host, ...(settings.opsHosts ?? [])];
    const ops = opsServer({ readState, metrics, hostNames, page: operatorConsole, log });
    const opsAddress = await ops.listen(reservedOps);
    opened.defer(() => ops.close());
    const address = await server.listen(reserved);
    opened.defer(() => server.close());
    // Last: a start that fails later could not show the token that it made.
    const firstToken = tokens.size === 0 ? await makeFirstToken(tokens, engine, settings) : undefined;
    const close = (): Promise<void> => {
      closing ??= opened.disposeAsync();
      return closing;
    };
    const hasToken = firstToken !== undefined || tokens.size > 0 || attached.verifiers.length > 0;
    return {
      address,
      opsAddress,
      firstToken: firstToken || undefined,
      hasToken,
      warnings,
      close,
      makeConsoleCode: settings.console && (() => makeConsoleCode(engine)),
    };
  } catch (error) {
    await opened
      .disposeAsync()
      .catch(cause => log.error({ err: cause }, 'a part of the service could not be closed'));
    throw error;
  }
}

function openTokens(engine: StorageEngine, damage: KnownDamage, log: ServiceLog): Promise<TokenCache> {
  const message = 'the token table cannot be read or written; after 4 s unread, creates get 503';
  const onFailure = rateLimitedLog(details => log.warn(details, message));
  return TokenCache.open(engine, damage.observed('reading tokens', onFailure));
}

async function openStore(settings: ServiceSettings): Promise<ServedStore> {
  const engine = await openServedStore(settings, message => settings.log.info(message));
  const schemaUpdate = schemaUpdateOf(engine.schemaSteps);
  if (schemaUpdate !== undefined) settings.log.info(schemaUpdate);
  return engine;
}

async function openExtras(
  { extras = [] }: ServiceSettings,
  context: ExtraContext,
  opened: AsyncDisposableStack,
): Promise<Attached> {
  const attached: Attached = { verifiers: [], observers: [], wrappers: [] };
  for (const open of extras) {
    const { verifiers = [], observers = [], wrappers = [] } = await open(context, opened);
    attached.verifiers.push(...verifiers);
    attached.observers.push(...observers);
    attached.wrappers.push(...wrappers);
    for (const { warning } of wrappers) context.log.warn({}, warning.detail);
  }
  return attached;
}

/** Tells observers of each batch. */
function observedCommit(
  commit: PlantCommits['commit'],
  observers: readonly ResponseObserver[],
): PlantCommits['commit'] {
  const watching = observers.filter(({ committing }) => committing !== undefined);
  if (watching.length === 0) return commit;
  return writes => {
    const ended = watching.flatMap(observer => observer.committing?.(writes) ?? []);
    return commit(writes).finally(() => {
      for (const each of ended) each();
    });
  };
}

/** What the service itself notes of each response. */
function ownObservers(
  { logRequest }: ServiceSettings,
  metrics: Metrics,
  { rejected, activity }: Pick<ConsoleParts, 'rejected' | 'activity'>,
): ResponseObserver[] {
  const counter: ResponseObserver = {
    responded(response, request) {
      metrics.countResponse(response.result, request && performance.now() - request.arrivedAt);
    },
  };
  const requestLog: ResponseObserver[] = logRequest
    ? [
        {
          responded: (response, request, addressOf) =>
            logRequest(loggedRequest(response, request, addressOf())),
        },
      ]
    : [];
  return [counter, rejected, activity, ...requestLog];
}

function plantServer(
  settings: ServiceSettings,
  tokens: TokenCache,
  queue: PlantQueue,
  attached: Attached,
): PlantServer {
  const { bodyBytesMax, docs, publicUrl, corsOrigins, rateLimit, log } = settings;
  const title = [VERSION, ...attached.wrappers.map(({ warning }) => warning.detail)].join(' ');
  const limit = rateLimit && new RateLimit(rateLimit);
  return new PlantServer({
    createPlant: new CreatePlant(tokens, queue, bodyBytesMax, limit, attached),
    corsOrigins,
    documentation: docs ? documentationOf(title, publicUrl) : undefined,
    attached,
    trustedProxies: settings.trustedProxies && trustedProxiesOf(settings.trustedProxies),
    onInternalError: errorLog(log, 'a request failed: unexpected internal error'),
  });
}

/**
 * The address of `/docs`, if it is served.
 *
 * @returns a function of the host of the console, which replaces a wildcard address
 */
function docsUrlOf(
  { docs, publicUrl, listen: { host } }: ServiceSettings,
  reserved: ReservedAddress,
): ConsoleParts['docsUrl'] {
  if (!docs) return undefined;
  if (publicUrl !== undefined) return () => `${publicUrl}/docs`;
  const { port } = reserved.address() as AddressInfo;
  const own = ['0.0.0.0', '::'].includes(host) ? undefined : host.includes(':') ? `[${host}]` : host;
  return consoleHost => `http://${own ?? consoleHost}:${port}/docs`;
}

export const LOOPBACK = /^(?:localhost|127\.[0-9.]+|::1)$/;

/**
 * Makes a token if only this machine can reach the service and the database user may make tokens.
 *
 * @returns the token; empty if another instance just made it; undefined if there is none
 */
async function makeFirstToken(
  tokens: TokenCache,
  engine: StorageEngine,
  { listen, handOverFirstToken, log }: ServiceSettings,
): Promise<string | undefined> {
  if (!LOOPBACK.test(listen.host) || (await engine.hasPlants())) return undefined;
  const token = makeToken();
  if (!handOverFirstToken(token)) return undefined;
  try {
    const stored = await engine.createToken({
      hash: hashToken(token),
      label: 'first',
      createdAt: Date.now(),
      expiresAt: null,
    });
    if (stored === undefined) return '';
    tokens.add(stored);
    return token;
  } catch (cause) {
    if (!(cause instanceof StoreRejected)) throw cause;
    log.info(
      'no first token: this database user may not create tokens; create one as the owner of the store',
    );
    return undefined;
  }
}
