import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CONSOLE_CODE_VALID_MS, makeConsoleSecret } from '../auth/console-code.ts';
import { hashToken, makeToken } from '../auth/token.ts';
import { csvLine } from '../contract/csv-line.ts';
import { TOKEN_LABEL_LENGTH_MAX } from '../contract/limits.ts';
import { isTokenLabel, type StoredToken } from '../contract/stored-token.ts';
import { contentResponse, type HttpResponse, jsonResponse } from '../http/response.ts';
import type { Metrics } from '../ops/metrics.ts';
import { readinessOf, type ServiceState } from '../ops/readiness.ts';
import type { PlantRevision, PlantSearch, StorageEngine } from '../store/plant-store.ts';
import { COOKIE, cookieOf, filterOf, InvalidCall, idOf, isOwnOrigin, readJsonBody } from './calls.ts';
import { DOWNLOAD_PAGE_PLANTS, PAGE_PLANTS, RECORDING_MINUTES_MAX, SEARCH_TIME_MS } from './limits.ts';
import { PAGE_FIELDS, pageFile } from './page-files.ts';
import type { RejectedRequests } from './rejected-requests.ts';
import { Samples } from './samples.ts';
import { Sessions } from './sessions.ts';

/** The name, the value and the source of a setting. */
export type ShownSetting = readonly [name: string, value: string, source: 'flag' | 'environment' | 'default'];

interface ConsoleParts {
  engine: StorageEngine;
  /** Opens a connection of its own for searches, so that they hold nothing up. */
  openSearch: () => Promise<PlantSearch>;
  metrics: Metrics;
  readState: () => Promise<ServiceState>;
  plantsInFlight: () => number;
  rejected: RejectedRequests;
  version: string;
  /** The store, without its password. */
  database: string;
  settings: readonly ShownSetting[];
  /** Sends a plant to this service; with `<TOKEN>` in place of the token. */
  curl: () => string;
  /** Makes a token that was created or revoked here take effect at once. */
  onToken: (token: StoredToken) => void;
  /** Logs what an operator did. */
  onChange: (change: string) => void;
}

/** What a handler gets: the query and, for a change, the body. */
interface Call {
  query: URLSearchParams;
  body: Record<string, unknown>;
  request: IncomingMessage;
  response: ServerResponse;
}

/** A response in JSON, another one, or undefined if the handler has responded. */
type Reply = object | HttpResponse | undefined;

/**
 * The page for operators, below `/console/` of the operations listener. That listener checks the
 * Host field.
 *
 * Whoever presents a one-time code gets a session, which a cookie names. Each path of `api/` needs
 * a session, except the one that begins it. A change also needs an Origin of its own (RFC 6454), so
 * no other page can make a browser send it.
 */
export class OperatorConsole implements AsyncDisposable {
  readonly #parts: ConsoleParts;
  readonly #sessions: Sessions;
  readonly #samples: Samples;
  readonly #sampling: NodeJS.Timeout;
  #search: Promise<PlantSearch> | undefined;
  #hasPlants = false;
  /** Free bytes of the disk at the start, for the rate at which it fills. */
  readonly #start = { at: Date.now(), diskFreeBytes: undefined as number | undefined };

  constructor(parts: ConsoleParts) {
    const { engine, metrics, plantsInFlight } = parts;
    this.#parts = parts;
    this.#sessions = new Sessions(hash => engine.takeConsoleCode(hash, Date.now()));
    this.#samples = new Samples(metrics.counts());
    this.#sampling = setInterval(() => {
      this.#samples.add(Math.floor(Date.now() / 1000), metrics.counts(), plantsInFlight());
    }, 1_000);
    void engine.statistics().then(({ diskFreeBytes }) => {
      this.#start.diskFreeBytes = diskFreeBytes;
    });
  }

  /** @returns a one-time code for the fragment of the address. @throws {StoreUnavailable} */
  async makeCode(): Promise<string> {
    const code = makeConsoleSecret();
    await this.#parts.engine.createConsoleCode(hashToken(code), Date.now() + CONSOLE_CODE_VALID_MS);
    return code;
  }

  /**
   * @param path after `/console/`
   * @returns undefined if it has responded
   */
  async respond(
    path: string,
    query: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<HttpResponse<string | Uint8Array> | undefined> {
    const { method = '' } = request;
    if (!path.startsWith('api/')) {
      const file = ['GET', 'HEAD'].includes(method) ? pageFile(path) : undefined;
      return file ?? failure(404, 'there is nothing at this path; the console is at /console/');
    }
    const isChange = !['GET', 'HEAD'].includes(method);
    if (isChange && !isOwnOrigin(request)) return failure(403, 'only the page of the console may send this');
    const body = isChange ? await readJsonBody(request) : {};
    if (body === undefined) return failure(400, 'the body is not a JSON object, or too long');
    const call: Call = { query: new URLSearchParams(query), body, request, response };
    const handler =
      this.#handlers[`${method === 'HEAD' ? 'GET' : method} ${path}`] ?? this.#plantHandler(path);
    if (path !== 'api/session' && !this.#sessions.isActive(cookieOf(request)))
      return failure(401, 'sign in first: run npx plant-store console for a new link');
    if (handler === undefined) return failure(404, 'there is nothing at this path');
    try {
      const reply = await handler(call);
      if (reply === undefined || 'headers' in reply) return reply as HttpResponse | undefined;
      return jsonResponse(200, JSON.stringify(reply));
    } catch (error) {
      if (error instanceof InvalidCall) return failure(422, error.message);
      // The message of a rejection tells what to do.
      const { name, message } = error as Error;
      if (name === 'StoreRejected') return failure(409, message);
      return failure(503, 'the store does not respond; the log of the service has the cause');
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sampling);
    await (await this.#search)?.[Symbol.asyncDispose]();
  }

  readonly #handlers: Record<string, (call: Call) => Promise<Reply> | Reply> = {
    'POST api/session': async ({ body }) => {
      const secret = await this.#sessions.signIn(String(body.code));
      if (secret === undefined)
        return failure(403, 'this link was used or has expired; run npx plant-store console');
      this.#parts.onChange('an operator signed in to the console');
      return noContent(['Set-Cookie', `${COOKIE}=${secret}; HttpOnly; SameSite=Strict; Path=/`]);
    },
    'DELETE api/session': ({ request }) => {
      this.#sessions.signOut(cookieOf(request) ?? '');
      return noContent(['Set-Cookie', `${COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0`]);
    },
    'GET api/now': async ({ query }) => {
      const { engine, readState, version, curl } = this.#parts;
      const readiness = readinessOf(await readState());
      this.#hasPlants ||= await engine.hasPlants();
      const samples = this.#samples.after(Number(query.get('after') ?? 0));
      return { ...samples, readiness, version, hasPlants: this.#hasPlants, curl: curl() };
    },
    'GET api/plants': async ({ query }) => {
      const search = await this.#openSearch();
      const page = await search.page(filterOf(query), PAGE_PLANTS, SEARCH_TIME_MS);
      const labels = await this.#labels();
      return {
        plants: page.plants.map(each => ({ id: String(each.plant.id), ...shownRevision(each, labels) })),
        next: page.next === undefined ? null : String(page.next),
        read: page.read,
        isCutShort: page.next !== undefined && page.plants.length < PAGE_PLANTS,
      };
    },
    'GET api/plants.csv': call => this.#download(call),
    'GET api/rejected': async () => {
      const { rejected } = this.#parts;
      const labels = await this.#labels();
      return { until: rejected.until ?? null, requests: rejected.list(id => labels.get(id)) };
    },
    'POST api/rejected': ({ body: { minutes } }) => {
      if (typeof minutes !== 'number' || !(minutes >= 0 && minutes <= RECORDING_MINUTES_MAX))
        throw new InvalidCall(`minutes must be a number from 0 to ${RECORDING_MINUTES_MAX}`);
      this.#parts.rejected.record(minutes);
      return noContent();
    },
    'GET api/tokens': async () => ({ tokens: (await this.#tokens()).map(shownToken) }),
    'POST api/tokens': async ({ body: { label, expiresAt = null } }) => {
      if (typeof label !== 'string' || !isTokenLabel(label))
        throw new InvalidCall(
          `the label must have 1 to ${TOKEN_LABEL_LENGTH_MAX} characters, without control characters and blanks at the ends`,
        );
      const createdAt = Date.now();
      if (expiresAt !== null && !(Number.isSafeInteger(expiresAt) && Number(expiresAt) > createdAt))
        throw new InvalidCall('the token must expire in the future');
      const token = makeToken();
      const row = { hash: hashToken(token), label, createdAt, expiresAt: expiresAt as number | null };
      const stored = await this.#parts.engine.createToken(row);
      if (stored === undefined) return failure(409, 'another token has this label; choose another one');
      this.#parts.onToken(stored);
      this.#parts.onChange(`an operator created the token ${JSON.stringify(label)} in the console`);
      return jsonResponse(201, JSON.stringify({ token }));
    },
    'POST api/tokens/revoke': async ({ body: { label } }) => {
      const token = await this.#parts.engine.revokeToken(String(label), Date.now());
      if (token === undefined) throw new InvalidCall('no token has this label');
      this.#parts.onToken(token);
      this.#parts.onChange(`an operator revoked the token ${JSON.stringify(token.label)} in the console`);
      return noContent();
    },
    'GET api/store': () => this.#store(),
  };

  /** The handler of `api/plants/ID`. */
  #plantHandler(path: string): ((call: Call) => Promise<Reply>) | undefined {
    const id = idOf(/^api\/plants\/(.+)$/.exec(path)?.[1] ?? '');
    if (id === undefined) return undefined;
    return async () => {
      const revisions = await (await this.#openSearch()).revisionsOf(id);
      const labels = await this.#labels();
      if (revisions.length === 0) return failure(404, 'no plant has this id');
      return { revisions: revisions.map(each => shownRevision(each, labels)) };
    };
  }

  /** Opened at the first search: a closed console costs nothing. */
  #openSearch(): Promise<PlantSearch> {
    this.#search ??= this.#parts.openSearch().catch(error => {
      // Otherwise one failure would last.
      this.#search = undefined;
      throw error;
    });
    return this.#search;
  }

  async #tokens(): Promise<StoredToken[]> {
    const tokens: StoredToken[] = [];
    for (;;) {
      const more = await this.#parts.engine.tokensChangedSince(tokens.at(-1)?.changeNumber ?? 0);
      if (more.length === 0) return tokens;
      tokens.push(...more);
    }
  }

  async #labels(): Promise<Map<number, string>> {
    return new Map((await this.#tokens()).map(({ id, label }) => [id, label]));
  }

  /** All plants of a filter, page by page, as slowly as the client reads. */
  async #download({ query, request, response }: Call): Promise<undefined> {
    const search = await this.#openSearch();
    const labels = await this.#labels();
    const filter = filterOf(query);
    response.writeHead(200, [
      ...[
        'Content-Type',
        'text/csv; charset=utf-8',
        'Content-Disposition',
        'attachment; filename="plants.csv"',
      ],
      ...PAGE_FIELDS,
    ]);
    if (request.method === 'HEAD') return void response.end();
    response.write(csvLine(['id', 'revision', 'name', 'tag', 'recorded_at', 'recorded_by']));
    for (let from = filter.from; !response.destroyed; ) {
      const page = await search.page(
        { ...filter, ...(from !== undefined && { from }) },
        DOWNLOAD_PAGE_PLANTS,
        SEARCH_TIME_MS,
      );
      const lines = page.plants.map(({ plant: { id, name, tag }, revision, recordedAt, recordedBy }) =>
        csvLine([
          String(id),
          String(revision),
          name,
          tag,
          new Date(recordedAt).toISOString(),
          labels.get(recordedBy),
        ]),
      );
      if (!response.write(lines.join('')))
        await Promise.race([once(response, 'drain'), once(response, 'close')]);
      if (page.next === undefined) return void response.end();
      from = page.next;
    }
  }

  async #store(): Promise<object> {
    const { engine, database, settings, version, readState } = this.#parts;
    const search = await this.#openSearch();
    const [statistics, size, state] = await Promise.all([engine.statistics(), search.size(), readState()]);
    const rows: [string, string | undefined][] = [
      ['Version', version],
      ['Store', database],
      ['Plants', String(size.plants)],
      ['Revisions', String(size.revisions)],
      ['Size', size.bytes === undefined ? undefined : megabytes(size.bytes)],
      ['Write-ahead log', statistics.walBytes === undefined ? undefined : megabytes(statistics.walBytes)],
      ['Connections to PostgreSQL', statistics.connections?.toString()],
      [
        'Free on the disk',
        statistics.diskFreeBytes === undefined ? undefined : megabytes(statistics.diskFreeBytes),
      ],
      ['Disk full in', this.#diskFullIn(statistics.diskFreeBytes)],
    ];
    return {
      rows: rows.filter(([, value]) => value !== undefined),
      warnings: state.storeWarnings ?? ['the store does not respond; the log of the service has the cause'],
      settings,
    };
  }

  #diskFullIn(freeBytes: number | undefined): string | undefined {
    const { at, diskFreeBytes } = this.#start;
    if (freeBytes === undefined || diskFreeBytes === undefined || Date.now() - at < RATE_MS_MIN)
      return undefined;
    const used = diskFreeBytes - freeBytes;
    if (used <= 0) return 'not at the rate since the start';
    const days = (freeBytes / used) * ((Date.now() - at) / 86_400_000);
    return days < 1
      ? 'less than a day, at the rate since the start'
      : `${Math.floor(days)} days, at the rate since the start`;
  }
}

/** In a shorter time, the disk fills too unevenly to tell when it is full. */
const RATE_MS_MIN = 600_000;

function failure(status: number, message: string): HttpResponse {
  return jsonResponse(status, JSON.stringify({ message }));
}

function noContent(fields: string[] = []): HttpResponse {
  return contentResponse('application/json', '', fields, 204);
}

function shownRevision(
  { plant, revision, recordedAt, recordedBy }: PlantRevision,
  labels: Map<number, string>,
) {
  const { name, tag } = plant;
  return {
    revision,
    name,
    ...(tag !== undefined && { tag }),
    recordedAt,
    recordedBy: labels.get(recordedBy) ?? '',
  };
}

function shownToken({ label, createdAt, expiresAt, revokedAt, lastUsedDay }: StoredToken) {
  return { label, createdAt, expiresAt, revokedAt, lastUsedDay };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toLocaleString('en', { maximumFractionDigits: 1 })} MB`;
}
