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
import { makeConsoleCode } from './operate/console/console-code.ts';
import { OperatorConsole, type ShownService, type ShownSetting } from './operate/console/operator-console.ts';
import { startSamples } from './operate/console/samples.ts';
import { requestLog } from './operate/logged-request.ts';
import { Metrics } from './operate/metrics.ts';
import { opsServer } from './operate/ops-server.ts';
import { errorLog, rateLimitedLog, type ServiceLog } from './operate/rate-limited-log.ts';
import { RecentRates } from './operate/recent-rates.ts';
import { type ObservedParts, ServiceStatus } from './operate/service-status.ts';
import { StoreMonitor } from './operate/store-monitor.ts';
import { documentationOf } from './pages/docs/docs-page.ts';
import { trustedProxiesOf } from './server/client-address.ts';
import type { AllowedOrigins } from './server/cross-origin.ts';
import { isLoopback, type ListenAddress, ReservedAddress } from './server/listen.ts';
import { PlantServer } from './server/plant-server.ts';
import { VERSION } from './version.ts';

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
  metrics: Metrics;
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
    const opsListener = opened.use(await ReservedAddress.reserve(settings.ops));
    const listener = opened.use(await ReservedAddress.reserve(settings.listen));
    const engine = opened.use(await openStore(settings));
    const monitor = opened.use(new StoreMonitor(engine, metrics, log));
    const tokens = opened.adopt(await openTokens(engine, monitor, log), each => each.close());
    const attached = await openExtras(settings, { tokens, engine, metrics, log }, opened);
    const rates = opened.use(new RecentRates(metrics));
    const queue = opened.adopt(openQueue(engine, monitor, attached), each => each.close());
    // The first check runs before the first plant, so the log begins with the warnings.
    const { warnings = [] } = await monitor.check();
    const docsUrl = docsUrlOf(settings, listener);
    const page = opened.use(
      await openConsole(settings, { engine, monitor, tokens, metrics, queue }, docsUrl),
    );
    const observers = [metrics, ...(page?.observers ?? []), ...requestLogOf(settings), ...attached.observers];
    const server = plantServer(settings, tokens, queue, { ...attached, observers });
    const status = new ServiceStatus({ engine, monitor, tokens, queue, rates, server, attached });
    const hostNames = [settings.ops.host, ...(settings.opsHosts ?? [])];
    const ops = opened.adopt(opsServer({ status, metrics, hostNames, page, log }), each => each.close());
    const opsAddress = await ops.listen(opsListener);
    const address = await opened.adopt(server, each => each.close()).listen(listener);
    // Last: a start that fails later could not show the token that it made.
    const firstToken = await makeFirstToken(tokens, engine, settings);
    let closing: Promise<void> | undefined;
    return {
      address,
      opsAddress,
      firstToken: firstToken.kind === 'made' ? firstToken.token : undefined,
      hasToken: firstToken.kind !== 'none' || attached.verifiers.length > 0,
      warnings,
      makeConsoleCode: page && (() => makeConsoleCode(engine)),
      close() {
        status.isShuttingDown = true;
        closing ??= opened.disposeAsync();
        return closing;
      },
    };
  } catch (error) {
    await opened
      .disposeAsync()
      .catch(cause => log.error({ err: cause }, 'a part of the service could not be closed'));
    throw error;
  }
}

function openTokens(engine: StorageEngine, { damage }: StoreMonitor, log: ServiceLog): Promise<TokenCache> {
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

function openQueue(engine: StorageEngine, { commits }: StoreMonitor, { observers }: Attached): PlantQueue {
  return engine.openQueue(observedCommit(commits.commit, observers));
}

type ConsoleSources = Pick<ObservedParts, 'engine' | 'monitor' | 'tokens' | 'queue'> & { metrics: Metrics };

/** @returns undefined if it is off */
async function openConsole(
  { console, database, log }: ServiceSettings,
  { engine, monitor, tokens, metrics, queue }: ConsoleSources,
  docsUrl: ShownService['docsUrl'],
): Promise<OperatorConsole | undefined> {
  if (console === undefined) return undefined;
  const isFirstStart = engine.schemaSteps.before === 0;
  return new OperatorConsole({
    shown: { ...console, version: VERSION, isFirstStart, docsUrl },
    engine,
    damage: monitor.damage,
    tokens,
    search: await openSearch(database),
    samples: startSamples(metrics, queue),
    log,
  });
}

function requestLogOf({ logRequest }: ServiceSettings): ResponseObserver[] {
  return logRequest === undefined ? [] : [requestLog(logRequest)];
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
): ShownService['docsUrl'] {
  if (!docs) return undefined;
  if (publicUrl !== undefined) return () => `${publicUrl}/docs`;
  const { port } = reserved.address() as AddressInfo;
  const own = ['0.0.0.0', '::'].includes(host) ? undefined : host.includes(':') ? `[${host}]` : host;
  return consoleHost => `http://${own ?? consoleHost}:${port}/docs`;
}

type FirstToken = { kind: 'made'; token: string } | { kind: 'exists' | 'none' };

/** Makes a token if there is none, only this machine can reach the service, and its database user may. */
async function makeFirstToken(
  tokens: TokenCache,
  engine: StorageEngine,
  { listen, handOverFirstToken, log }: ServiceSettings,
): Promise<FirstToken> {
  if (tokens.size > 0) return { kind: 'exists' };
  if (!isLoopback(listen.host) || (await engine.hasPlants())) return { kind: 'none' };
  const token = makeToken();
  if (!handOverFirstToken(token)) return { kind: 'none' };
  try {
    const stored = await engine.createToken({
      hash: hashToken(token),
      label: 'first',
      createdAt: Date.now(),
      expiresAt: null,
    });
    // Another instance has just made it.
    if (stored === undefined) return { kind: 'exists' };
    tokens.add(stored);
    return { kind: 'made', token };
  } catch (cause) {
    if (!(cause instanceof StoreRejected)) throw cause;
    log.info(
      'no first token: this database user may not create tokens; create one as the owner of the store',
    );
    return { kind: 'none' };
  }
}
