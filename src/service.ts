import type { AddressInfo } from 'node:net';
import type { PlantQueue } from './core/commit/plant-commits.ts';
import { CreatePlant } from './core/create-plant.ts';
import type { Attached } from './core/extension-points.ts';
import type { Problem } from './core/problem.ts';
import { RateLimit, type RateLimitPolicy } from './core/tokens/rate-limit.ts';
import type { TokenCache } from './core/tokens/token-cache.ts';
import type { DatabaseAddress } from './engines/openers/database-url.ts';
import { openerOf } from './engines/openers/open-store.ts';
import type { ServedSettings, ServedStore } from './engines/openers/store-opener.ts';
import { schemaUpdateOf } from './engines/storage-engine.ts';
import type { TokenTable } from './engines/tables/token-table.ts';
import { makeConsoleCode } from './operate/console/console-code.ts';
import { openConsole } from './operate/console/open-console.ts';
import type { ShownService } from './operate/console/operator-console.ts';
import { makeFirstToken } from './operate/first-token.ts';
import { RecentRates } from './operate/health/recent-rates.ts';
import { ServiceStateReader } from './operate/health/service-state-reader.ts';
import { StoreMonitor } from './operate/health/store-monitor.ts';
import { requestLog } from './operate/log/logged-request.ts';
import { errorLog, type ServiceLog } from './operate/log/rate-limited-log.ts';
import { loggedTraceId, TRACE_FIELD, type TraceIdOf } from './operate/log/request-traces.ts';
import { Metrics } from './operate/metrics.ts';
import { openMonitoredTokens } from './operate/monitored-tokens.ts';
import { opsServer } from './operate/ops-server.ts';
import { documentationOf } from './pages/docs/docs-page.ts';
import { trustedProxiesOf } from './server/client-address.ts';
import type { AllowedOrigins } from './server/cross-origin.ts';
import { ReservedAddress } from './server/listen.ts';
import { type ListenAddress, listenerUrl } from './server/listen-address.ts';
import { PlantServer } from './server/plant-server.ts';
import { VERSION } from './version.ts';

export interface ServiceSettings extends ServedSettings {
  database: DatabaseAddress;
  listen: ListenAddress;
  ops: ListenAddress;
  /** Names that the Host field of operators may have, besides localhost and the host in `ops`. */
  opsHosts?: readonly string[] | undefined;
  bodyBytesMax: number;
  /** Proxies whose X-Forwarded-For names the client; undefined: none. */
  trustedProxies?: readonly string[] | undefined;
  /** Whether `/docs` and `/openapi.json` are served. */
  docs: boolean;
  /**
   * The address in `/docs` and `/openapi.json`, without a final slash; undefined: that of the
   * request.
   */
  publicUrl?: string | undefined;
  /** Origins whose pages may send requests; undefined: only that of the service. */
  corsOrigins?: AllowedOrigins | undefined;
  /** Limit of each token; undefined: no limit. */
  rateLimit?: RateLimitPolicy | undefined;
  /** The service opens them in this order, before it accepts requests. */
  extras?: readonly OpenExtra[];
  /** What the console shows of the service; undefined: no console. */
  console?: Pick<ShownService, 'database' | 'settings' | 'ops'> | undefined;
  /** Called before the store has the first token. If it returns false, the store gets none. */
  handOverFirstToken: (token: string) => boolean;
  log: ServiceLog;
  /** Called with the log fields of each request, after its response. */
  logRequest?: (request: object) => void;
}

/** What an extra uses of the service. */
export interface ExtraContext {
  tokens: TokenCache;
  tokenTable: TokenTable;
  metrics: Metrics;
  traceIdOf: TraceIdOf;
  log: ServiceLog;
}

/**
 * Opens an extra.
 *
 * @param opened closes what is added to it, after everything that the extra is attached to, and
 *   after the store
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
  /** Warnings of the store at the start, for the operator. */
  warnings: readonly Problem[];
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
    // The addresses come before the store: a start that fails here leaves no new store.
    const opsListener = opened.use(await ReservedAddress.reserve(settings.ops));
    const listener = opened.use(await ReservedAddress.reserve(settings.listen));
    // What extras open is closed after the store: a collector that hangs must not keep it open.
    const openedByExtras = opened.use(new AsyncDisposableStack());
    const { engine, isAfterCrash } = opened.use(await openStore(settings));
    const { operatorTables, tokenTable } = engine;
    const monitor = new StoreMonitor(engine, metrics, log);
    const { commits, damage } = monitor;
    const tokens = opened.adopt(await openMonitoredTokens(tokenTable, damage, log), each => each.close());
    const attached: Attached = { validators: [], observers: [], traceSources: [], wrappers: [] };
    const traceIdOf: TraceIdOf = request => loggedTraceId(request, attached.traceSources);
    const context = { tokens, tokenTable, metrics, traceIdOf, log };
    await attachExtras(settings, context, openedByExtras, attached);
    commits.showTo(attached.observers);
    const rates = opened.use(new RecentRates(metrics));
    const queue = opened.adopt(
      engine.openQueue(writes => commits.commit(writes)),
      each => each.close(),
    );
    // The store is asked before the first plant arrives, so the log begins with its warnings.
    const storeState = await monitor.readState();
    opened.use(monitor.watch());
    const shown = settings.console && {
      ...settings.console,
      version: VERSION,
      docsUrl: shownDocsUrl(settings, listener),
      bodyBytesMax: settings.bodyBytesMax,
    };
    const sources = { engine, monitor, tokens, metrics, queue, log };
    const page = shown && opened.use(await openConsole(shown, settings.database, sources));
    const observers = [
      metrics,
      ...(page?.observers ?? []),
      ...(settings.logRequest ? [requestLog(settings.logRequest, traceIdOf)] : []),
      ...attached.observers,
    ];
    const server = plantServer(settings, tokens, queue, traceIdOf, { ...attached, observers });
    const stateReader = new ServiceStateReader({
      engine,
      isAfterCrash,
      monitor,
      tokens,
      queue,
      rates,
      server,
      attached,
    });
    const hostNames = [settings.ops.host, ...(settings.opsHosts ?? [])];
    const ops = opened.adopt(opsServer({ stateReader, metrics, hostNames, page, log }), each => each.close());
    const opsAddress = await ops.listen(opsListener);
    const address = await opened.adopt(server, each => each.close()).listen(listener);
    // The token comes last: a start that fails later could not show the token that it made.
    const firstToken = await makeFirstToken(tokens, engine, settings);
    let closing: Promise<void> | undefined;
    return {
      address,
      opsAddress,
      firstToken: firstToken.kind === 'made' ? firstToken.token : undefined,
      hasToken: firstToken.kind !== 'none' || attached.validators.length > 0,
      warnings: storeState.kind === 'usable' ? storeState.warnings : [],
      makeConsoleCode: page && (() => makeConsoleCode(operatorTables)),
      close() {
        stateReader.isShuttingDown = true;
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

async function openStore(settings: ServiceSettings): Promise<ServedStore> {
  const { database, log } = settings;
  const store = await openerOf(database).openServed(settings, message => log.info(message));
  const schemaUpdate = schemaUpdateOf(store.engine.schemaSteps);
  if (schemaUpdate !== undefined) log.info(schemaUpdate);
  return store;
}

async function attachExtras(
  { extras = [] }: ServiceSettings,
  context: ExtraContext,
  opened: AsyncDisposableStack,
  attached: Attached,
): Promise<void> {
  for (const open of extras) {
    const { validators = [], observers = [], traceSources = [], wrappers = [] } = await open(context, opened);
    attached.validators.push(...validators);
    attached.observers.push(...observers);
    attached.traceSources.push(...traceSources);
    attached.wrappers.push(...wrappers);
    for (const { warning } of wrappers) context.log.warn({}, warning.fault);
  }
}

/** @returns undefined if `/docs` is not served */
function shownDocsUrl(
  { docs, publicUrl, listen }: ServiceSettings,
  listener: ReservedAddress,
): ShownService['docsUrl'] {
  if (!docs) return undefined;
  if (publicUrl !== undefined) return () => `${publicUrl}/docs`;
  const { port } = listener.address() as AddressInfo;
  return ownHost => `${listenerUrl({ ...listen, port }, ownHost)}/docs`;
}

function plantServer(
  settings: ServiceSettings,
  tokens: TokenCache,
  queue: PlantQueue,
  traceIdOf: TraceIdOf,
  attached: Attached,
): PlantServer {
  const { bodyBytesMax, docs, publicUrl, corsOrigins, rateLimit, log } = settings;
  const title = [VERSION, ...attached.wrappers.map(({ warning }) => warning.fault)].join(' ');
  const createPlant = new CreatePlant({
    tokens,
    queue,
    bodyBytesMax,
    rateLimit: rateLimit && new RateLimit(rateLimit),
    validators: attached.validators,
    wrappers: attached.wrappers,
  });
  const logInternalError = errorLog(log, 'a request failed: unexpected internal error');
  return new PlantServer({
    createPlant,
    corsOrigins,
    documentation: docs ? documentationOf(title, publicUrl) : undefined,
    observers: attached.observers,
    varyingField: TRACE_FIELD,
    trustedProxies: settings.trustedProxies && trustedProxiesOf(settings.trustedProxies),
    onInternalError: (cause, request) => logInternalError(cause, traceIdOf(request)),
  });
}
