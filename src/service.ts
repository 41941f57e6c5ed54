import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { hashToken, makeToken } from './auth/token.ts';
import { TokenDirectory } from './auth/token-directory.ts';
import { READINESS_WAIT_MS } from './contract/limits.ts';
import { CreatePlant } from './http/create-plant.ts';
import { type ListenAddress, PlantServer } from './http/plant-server.ts';
import { OpsServer, type Readiness } from './ops/ops-server.ts';
import { GroupCommit } from './store/group-commit.ts';
import { openServedStore, type StoreSettings } from './store/open-store.ts';
import { type StorageEngine, StoreRefused, StoreUnavailable } from './store/plant-store.ts';

export type { ListenAddress };

/** What a service is started with. */
export interface ServiceSettings extends StoreSettings {
  listen: ListenAddress;
  ops: ListenAddress;
  bodyBytesMax: number;
  /** Where the service says what an operator must know. */
  log: ServiceLog;
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
    const store = await openServedStore(settings);
    opened.defer(() => store.close());
    const tokens = await TokenDirectory.open(store.engine, cause =>
      log.warn(
        { err: rawCause(cause) },
        'the store does not answer for tokens; those known so far stay in force',
      ),
    );
    opened.defer(() => tokens.close());
    const keeper = new GroupCommit(store.engine, {
      storeFailed: cause =>
        log.error(
          { err: rawCause(cause) },
          'the store does not confirm plants; they are answered 503 until it does',
        ),
      storeRecovered: () => log.info('the store confirms plants again'),
    });
    opened.defer(() => keeper.close());

    let closing: Promise<void> | undefined;
    const readiness = storeReadiness(store.engine, log);
    // Once before the first plant is taken: what there is to warn of is in the log from the start.
    const state = await readiness();
    const ops = new OpsServer({
      readiness: async () =>
        closing === undefined ? readiness() : { ready: false, reason: 'shutting down' },
    });
    const opsAddress = await listening(settings.ops, ops);
    opened.defer(() => ops.close());
    const server = new PlantServer(new CreatePlant(tokens, keeper, settings.bodyBytesMax), cause =>
      log.error({ err: cause }, 'a request failed in a way the service does not know'),
    );
    const address = await listening(settings.listen, server);
    opened.defer(() => server.close());
    // Last, so that a token is never made by a start that then fails and cannot show it.
    const first = tokens.isEmpty ? await makeFirstToken(store.engine, settings) : undefined;
    const close = (): Promise<void> => {
      closing ??= opened.disposeAsync();
      return closing;
    };
    const hasToken = first !== undefined || !tokens.isEmpty;
    const warnings = state.ready ? state.warnings : [];
    return { address, opsAddress, firstToken: first?.token, hasToken, warnings, close };
  } catch (error) {
    await opened
      .disposeAsync()
      .catch(cause => log.error({ err: cause }, 'what was opened could not be closed'));
    throw error;
  }
}

const LOOPBACK = /^(?:localhost|127\.[0-9.]+|::1)$/;

/**
 * Only where nobody but this machine can use it, and where this user of a database may make tokens.
 *
 * @returns the token, or nothing of it when another instance made it at the same time; undefined when there is none
 */
async function makeFirstToken(
  engine: StorageEngine,
  { listen, log }: ServiceSettings,
): Promise<{ token?: string } | undefined> {
  if (!LOOPBACK.test(listen.host) || (await engine.hasPlants())) return undefined;
  const token = makeToken();
  const label = 'first';
  try {
    const stored = await engine.createToken({
      hash: hashToken(token),
      label,
      createdAt: Date.now(),
      expiresAt: null,
    });
    return stored === undefined ? {} : { token };
  } catch (cause) {
    if (!(cause instanceof StoreRefused)) throw cause;
    log.info('no first token is made: this service may make none; make one as the owner of the store');
    return undefined;
  }
}

/** @returns tells whether the store can be used now; the cause and the warnings go to the log, once for each change */
function storeReadiness(engine: StorageEngine, log: ServiceLog): () => Promise<Readiness> {
  let reachable = true;
  let known: readonly string[] = [];
  const logChange = (warnings: readonly string[]): void => {
    if (warnings.length === known.length && warnings.every(warning => known.includes(warning))) return;
    for (const warning of warnings) log.warn({ warnings }, `the store warns: ${warning}`);
    if (warnings.length === 0) log.info('the store has nothing to warn of any more');
    known = warnings;
  };
  return async () => {
    const deadline = new AbortController();
    try {
      const late = wait(READINESS_WAIT_MS, undefined, { signal: deadline.signal });
      const warnings = await Promise.race([engine.check(), late]);
      if (warnings === undefined) throw new Error('no answer in time');
      if (!reachable) log.info('the store can be used again');
      reachable = true;
      logChange(warnings);
      return { ready: true, warnings };
    } catch (cause) {
      if (reachable) log.warn({ err: rawCause(cause) }, 'the store cannot be used; /readyz says so');
      reachable = false;
      return { ready: false, reason: 'the store cannot be used now; the log has the cause' };
    } finally {
      deadline.abort();
    }
  };
}

/** The log says what went wrong, and not a second time what was made of it for a person. */
function rawCause(error: unknown): unknown {
  return error instanceof StoreUnavailable ? (error.cause ?? error) : error;
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
