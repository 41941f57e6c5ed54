import type { AddressInfo } from 'node:net';
import { type Clock, SYSTEM_CLOCK } from './core/clock.ts';
import type { PlantCommits, PlantQueue } from './core/commit/plant-commits.ts';
import { StoreRejected } from './core/commit/store-errors.ts';
import { CreatePlant, type Credentials } from './core/create-plant.ts';
import { RateLimit, type RateLimitPolicy } from './core/tokens/rate-limit.ts';
import { hashToken, makeToken } from './core/tokens/token.ts';
import { TokenCache } from './core/tokens/token-cache.ts';
import { traceContextOf } from './core/trace-context.ts';
import { openSearch, openServedStore, type ServedStore, type StoreSettings } from './engines/open-store.ts';
import { type StorageEngine, schemaUpdateOf } from './engines/storage-engine.ts';
import type { OpenIdSettings } from './extras/openid/open-id-settings.ts';
import type { Sandbox } from './extras/sandbox/sandbox.ts';
import type { TraceSettings, Tracing } from './extras/traces/tracing.ts';
import { Activity } from './operate/console/activity.ts';
import { makeConsoleCode } from './operate/console/console-code.ts';
import { type ConsoleParts, OperatorConsole, type ShownSetting } from './operate/console/operator-console.ts';
import { RejectedRequests } from './operate/console/rejected-requests.ts';
import { startSamples } from './operate/console/samples.ts';
import { KnownDamage } from './operate/known-damage.ts';
import { loggedRequest } from './operate/logged-request.ts';
import { Metrics } from './operate/metrics.ts';
import { monitoredCommits } from './operate/monitored-commits.ts';
import { opsServer } from './operate/ops-server.ts';
import { errorLog, rateLimitedLog, type ServiceLog } from './operate/rate-limited-log.ts';
import type { ServiceState } from './operate/readiness.ts';
import { storeWarningsOf } from './operate/store-warnings.ts';
import { documentationOf } from './pages/docs/docs-page.ts';
import { clientAddress, trustedProxiesOf } from './server/client-address.ts';
import type { AllowedOrigins } from './server/cross-origin.ts';
import { type ListenAddress, ListenFailed, ReservedAddress } from './server/listen.ts';
import { PlantServer } from './server/plant-server.ts';
import { VERSION } from './version.ts';

/** Interval of the store checks that log warnings, so that the log does not depend on `/readyz`. */
const STORE_WATCH_INTERVAL_MS = 10_000;
const COMMITS_ASSESSED_INTERVAL_MS = 1_000;

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
  /** Where spans are sent; undefined: nowhere. */
  traces?: TraceSettings | undefined;
  /** The provider whose access tokens are valid, too; undefined: none. */
  openId?: OpenIdSettings | undefined;
  /** The time for access tokens and the keys of their provider; undefined: that of the system. */
  clock?: Clock | undefined;
  /** What the console shows of the service; undefined: no console. */
  console?: { database: string; settings: readonly ShownSetting[] } | undefined;
  /** Makes the service fail on request. */
  sandbox?: Sandbox | undefined;
  /** Called before the store has the first token. If it returns false, the store gets none. */
  handOverFirstToken: (token: string) => boolean;
  log: ServiceLog;
  /** Called with the log fields of each request, after its response. */
  logRequest?: (request: object) => void;
}

export interface Service {
  address: AddressInfo;
  opsAddress: AddressInfo;
  /** Token of a new store that only this machine can reach. It is never logged. */
  firstToken: string | undefined;
  /** Whether the store has any token; without one nobody can send a plant. */
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
    // Its modules are loaded only if needed. It is closed after all that makes spans.
    const { startTracing } = settings.traces ? await import('./extras/traces/tracing.ts') : {};
    const tracing = opened.use(startTracing?.(settings.traces!, log));
    const engine = opened.use(await openStore(settings));
    const damage = new KnownDamage(engine, log);
    const restartedAt = engine.isAfterCrash ? Date.now() : null;
    const tokens = await openTokens(engine, damage, log);
    opened.defer(() => tokens.close());
    const commits = monitoredCommits(engine, metrics, damage, log);
    opened.use(setInterval(() => void commits.assess(), COMMITS_ASSESSED_INTERVAL_MS));
    const queue = engine.openQueue(tracing?.observed(commits.commit) ?? commits.commit);
    opened.defer(() => queue.close());

    let closing: Promise<void> | undefined;
    const storeWarnings = storeWarningsOf(commits.check, log);
    // The first check runs before the first plant, so the log begins with the warnings.
    const { warnings = [] } = await storeWarnings();
    opened.use(setInterval(() => void storeWarnings(), STORE_WATCH_INTERVAL_MS));
    const observed = { rejected: new RejectedRequests(), activity: new Activity() };
    const accessTokens = opened.use(await openAccessTokens(settings, tokens, engine));
    const server = plantServer(settings, { tokens, accessTokens }, queue, metrics, { ...observed, tracing });
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
      notice: settings.sandbox?.notice,
      openConnections: server.openConnections,
      isShuttingDown: closing !== undefined,
      spansDropped: tracing?.dropped(),
      accessTokensFault: accessTokens?.fault(),
    });
    const operatorConsole =
      settings.console &&
      new OperatorConsole({
        engine,
        damage,
        ...observed,
        log,
        version: VERSION,
        ...settings.console,
        isFirstStart: engine.schemaSteps.before === 0,
        samples: opened.use(startSamples(metrics, queue)),
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
    const hasToken = firstToken !== undefined || tokens.size > 0;
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

/** The library of access tokens is loaded only if needed. */
async function openAccessTokens(
  { openId, log, clock = SYSTEM_CLOCK }: ServiceSettings,
  tokens: TokenCache,
  engine: StorageEngine,
) {
  if (openId === undefined) return undefined;
  const { openAccessTokens } = await import('./extras/openid/access-tokens.ts');
  const onFailure = (message: string) => rateLimitedLog(details => log.warn(details, message));
  return openAccessTokens(openId, clock, tokens, engine, onFailure);
}

/** What sees each response. */
type Observers = Pick<ConsoleParts, 'rejected' | 'activity'> & { tracing: Tracing | undefined };

function plantServer(
  settings: ServiceSettings,
  credentials: Credentials,
  queue: PlantQueue,
  metrics: Metrics,
  { rejected, activity, tracing }: Observers,
): PlantServer {
  const { bodyBytesMax, docs, publicUrl, corsOrigins, rateLimit, log, logRequest, sandbox } = settings;
  const Operation = sandbox?.operation ?? CreatePlant;
  const title = `${VERSION} ${sandbox?.notice ?? ''}`.trim();
  const trustedProxies = settings.trustedProxies && trustedProxiesOf(settings.trustedProxies);
  return new PlantServer({
    createPlant: new Operation(credentials, queue, bodyBytesMax, rateLimit && new RateLimit(rateLimit)),
    ...(sandbox && { mark: sandbox.mark }),
    corsOrigins,
    documentation: docs ? documentationOf(title, publicUrl) : undefined,
    traceContextOf: tracing?.contextOf ?? traceContextOf,
    onInternalError: errorLog(log, 'a request failed: unexpected internal error'),
    onResponse: (response, request, socket) => {
      metrics.countResponse(response.result, request && performance.now() - request.arrivedAt);
      // Most responses need it nowhere.
      const addressOf = () => clientAddress(socket.remoteAddress, request?.head.forwardedFor, trustedProxies);
      rejected.observe(response, request, addressOf);
      activity.observe(response, request);
      tracing?.responded(response, request, addressOf());
      logRequest?.(loggedRequest(response, request, addressOf()));
    },
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
