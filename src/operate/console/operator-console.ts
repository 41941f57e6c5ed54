import type { IncomingMessage, ServerResponse } from 'node:http';
import { StoreDamaged, StoreRejected, StoreUnavailable } from '../../core/commit/store-errors.ts';
import { ERRORS } from '../../core/contract/errors.ts';
import type { ResponseObserver } from '../../core/extension-points.ts';
import { problemText } from '../../core/problem.ts';
import type { TokenCache } from '../../core/tokens/token-cache.ts';
import { databaseFlag } from '../../engines/openers/database-url.ts';
import type { PlantSearch } from '../../engines/search/plant-search.ts';
import type { StorageEngine } from '../../engines/storage-engine.ts';
import { bytesText } from '../../formats/bytes-text.ts';
import { pageFile } from '../../pages/console/page-files.ts';
import { DAMAGE, type KnownDamage } from '../health/known-damage.ts';
import type { StoreMonitor } from '../health/store-monitor.ts';
import { errorLog, type ServiceLog } from '../log/rate-limited-log.ts';
import { json, type OpsResponse } from '../ops-response.ts';
import type { OpsPage } from '../ops-server.ts';
import { Activity } from './activity.ts';
import {
  countOf,
  expiredCookie,
  failure,
  type Handler,
  InvalidApiRequest,
  isOwnOrigin,
  noContent,
  readJsonBody,
  secretOf,
  sessionCookie,
} from './api-requests.ts';
import { PlantRequests } from './plant-requests.ts';
import { PlantTotal } from './plant-total.ts';
import { type LabelOf, RejectedRequests } from './rejected-requests.ts';
import type { Samples } from './samples.ts';
import { Sessions } from './sessions.ts';
import { type FactRow, StoreFacts } from './store-facts.ts';
import { TokenRequests } from './token-requests.ts';

/** The name, the value and the source of a setting. */
export type ShownSetting = readonly [name: string, value: string, source: 'flag' | 'environment' | 'default'];

/** What the console shows of its service, besides the state of its parts. */
export interface ShownService {
  version: string;
  isFirstStart: boolean;
  /** The store, without its password. */
  database: string;
  settings: readonly ShownSetting[];
  /** The address of the console, as the command `console` needs it; undefined: its default. */
  ops?: string | undefined;
  /** Returns the address of `/docs` for a console at a host; undefined: `/docs` is not served. */
  docsUrl: ((consoleHost: string) => string) | undefined;
  bodyBytesMax: number;
}

export interface ConsoleParts {
  shown: ShownService;
  engine: StorageEngine;
  monitor: StoreMonitor;
  /** Labels come from this cache, since the store may not respond. */
  tokens: Pick<TokenCache, 'add' | 'labelOf' | 'isRevoked'>;
  /** Searches use connections or threads of their own, so they delay no creates. */
  search: PlantSearch;
  samples: Samples;
  /** Undefined: the samples do not survive a restart. */
  sampleFile: AsyncDisposable | undefined;
  /** Gets the actions of operators, and the causes of failed requests. */
  log: ServiceLog;
}

/**
 * The page for operators, below `/console/` of the operations listener, which validates Host.
 *
 * A one-time code starts a session. Half of its secret is in a cookie, the other half in a header.
 * All paths of `api/` need a session, except `api/session`, which starts and ends it. A change also
 * needs the Origin of this listener (RFC 6454), so that no other page can make a browser send it.
 */
export class OperatorConsole implements OpsPage, AsyncDisposable {
  readonly #parts: ConsoleParts;
  readonly #sessions: Sessions;
  readonly #tokens: TokenRequests;
  readonly #rejected = new RejectedRequests();
  readonly #activity = new Activity();
  /** Observers that collect what the page shows of responses. */
  readonly observers: readonly ResponseObserver[];
  readonly #facts: StoreFacts;
  readonly #total: PlantTotal;
  readonly #plants: PlantRequests;
  readonly #onError: (cause: unknown) => void;

  constructor(parts: ConsoleParts) {
    this.#parts = parts;
    this.#sessions = new Sessions(parts.engine.operatorTables);
    this.#tokens = new TokenRequests({ ...parts, tokenTable: parts.engine.tokenTable });
    this.#facts = new StoreFacts(parts.engine, parts.monitor, parts.shown);
    this.observers = [this.#rejected, this.#activity, parts.samples];
    const onError = errorLog(parts.log, 'a request of the console failed');
    this.#onError = parts.monitor.damage.listener('a search', onError);
    this.#total = new PlantTotal(parts.search, this.#onError);
    this.#plants = new PlantRequests({
      ...parts,
      activity: this.#activity,
      total: this.#total,
      damage: parts.monitor.damage,
      labelOf: this.#labelOf,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#total[Symbol.dispose]();
    this.#rejected[Symbol.dispose]();
    this.#parts.samples[Symbol.dispose]();
    await this.#parts.sampleFile?.[Symbol.asyncDispose]();
    await this.#parts.search[Symbol.asyncDispose]();
  }

  async respond(
    path: string,
    query: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<OpsResponse | undefined> {
    const { method = '' } = request;
    if (!path.startsWith('api/')) {
      const file = ['GET', 'HEAD'].includes(method) ? pageFile(path) : undefined;
      return file ?? failure(404, 'there is nothing at this path; the console is at /console/');
    }
    if (method !== 'GET' && !isOwnOrigin(request))
      return failure(403, 'only the page of the console may send this');
    const handler = this.#handlers[`${method} ${path}`] ?? this.#plants.handlers[`${method} ${path}`];
    try {
      if (path !== 'api/session' && !(await this.#isSignedIn(request)))
        return failure(401, `sign in first: run ${this.#signInCommand()} for a new link`);
      if (handler === undefined) return failure(404, 'there is nothing at this path');
      const body = method === 'GET' ? {} : await readJsonBody(request);
      return await handler({ query: new URLSearchParams(query), body, request, response });
    } catch (error) {
      if (error instanceof InvalidApiRequest) return failure(422, error.message);
      // The message of this error tells the operator what to do.
      if (error instanceof StoreRejected) return failure(409, error.message);
      // The client closed the connection of a download.
      if ((error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE') return undefined;
      this.#onError(error);
      if (error instanceof StoreDamaged)
        return failure(
          503,
          problemText({ ...DAMAGE, fault: 'the store is damaged, and a part of it cannot be read' }),
        );
      if (error instanceof StoreUnavailable)
        return failure(503, 'the store does not respond; the log of the service has the cause');
      return failure(500, ERRORS.internal.message);
    }
  }

  async #isSignedIn(request: IncomingMessage): Promise<boolean> {
    const secret = secretOf(request);
    return secret !== undefined && (await this.#sessions.isActive(secret));
  }

  /** By method and path, such as `GET api/now`. */
  readonly #handlers: Record<string, Handler> = {
    'POST api/session': async ({ body, request }) => {
      const secret = typeof body.code === 'string' ? await this.#sessions.signIn(body.code) : undefined;
      if (secret === undefined)
        return failure(
          403,
          `this link was used, has expired or is of another store; run ${this.#signInCommand()} for a new one`,
        );
      this.#parts.log.info('an operator signed in to the console');
      return json({ secret: secret.headerHalf }, 200, sessionCookie(request, secret.cookieHalf));
    },
    'GET api/session': () => json({ command: this.#signInCommand(), hasDatabase: this.#isFile }),
    'DELETE api/session': async ({ request }) => {
      const secret = secretOf(request);
      if (secret !== undefined) await this.#sessions.signOut(secret);
      return noContent(expiredCookie(request));
    },
    'GET api/now': async ({ query }) => {
      const { samples, monitor } = this.#parts;
      return json({
        ...samples.after(countOf(query, 'after') ?? 0),
        runs: marksOf(monitor.damage),
        total: this.#total.read(),
        busiest: this.#activity.busiest(this.#labelOf),
        statistics: await this.#facts.statistics(),
        facts: this.#facts.startAndChecks(),
      });
    },
    'GET api/rejected': () => json(this.#rejected.list(this.#labelOf, this.#isRevoked)),
    'GET api/rejected/examples': ({ query }) =>
      json({
        ...this.#rejected.examples(query.get('key') ?? '', this.#labelOf, this.#isRevoked),
        bodyBytesMax: this.#parts.shown.bodyBytesMax,
      }),
    'POST api/rejected': ({ body: { isOn } }) => {
      if (typeof isOn !== 'boolean') throw new InvalidApiRequest('isOn must be true or false');
      this.#rejected.recordBodies(isOn);
      return noContent();
    },
    'GET api/tokens': () => this.#tokens.list(this.#activity.lastUses),
    'POST api/tokens': ({ body }) => this.#tokens.create(body),
    'POST api/tokens/revoke': ({ body }) => this.#tokens.revoke(body),
    'GET api/store': async () => {
      const { shown, search, engine } = this.#parts;
      const { database, settings } = shown;
      const statistics = await engine.statistics();
      const bytes = await search.bytes().catch(cause => {
        this.#onError(cause);
        return undefined;
      });
      const rows: FactRow[] = [
        { label: 'Store', text: database },
        { label: 'Size', text: bytes === undefined ? undefined : bytesText(bytes) },
        statistics.kind === 'sqlite'
          ? { label: 'Write-ahead log', text: bytesText(statistics.walBytes) }
          : { label: 'Connections to PostgreSQL', text: String(statistics.connections) },
      ];
      return json({ rows: [...rows, ...(await this.#facts.rows())], settings });
    },
  };

  /**
   * Whether the address of the store is shown before the sign-in: a path is no secret, but the host
   * and the user of a database may be.
   */
  get #isFile(): boolean {
    return this.#parts.shown.database.startsWith('sqlite:');
  }

  /** The command that prints a link to this console. */
  #signInCommand(): string {
    const { ops, database } = this.#parts.shown;
    const store = this.#isFile ? ` ${databaseFlag(database)}` : '';
    return `npx plant-store console${store}${ops === undefined ? '' : ` --ops ${ops}`}`;
  }

  /** A copied revision may contain the id of a token that this store lacks. */
  readonly #isRevoked = (tokenId: number): boolean => this.#parts.tokens.isRevoked(tokenId);

  readonly #labelOf: LabelOf = tokenId => this.#parts.tokens.labelOf(tokenId) ?? String(tokenId);
}

/** The marks of the plots: the end of each last run, and the time of the last damage. */
function marksOf({ lastRuns, recorded }: KnownDamage): { command: string; endedAt: number }[] {
  const marks = lastRuns.map(({ command, endedAt }) => ({ command, endedAt }));
  return recorded === undefined ? marks : [...marks, { command: 'damage', endedAt: recorded.foundAt }];
}
