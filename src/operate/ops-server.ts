import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ErrorBody, ErrorName } from '../core/contract/errors.ts';
import { contentResponse, errorResponse, type HttpResponse } from '../core/response.ts';
import type { ReservedAddress } from '../server/listen.ts';
import { COMMON_FIELDS, ResponseHeaders } from '../server/response-headers.ts';
import { isAllowedHost } from './allowed-host.ts';
import { readinessOf } from './health/readiness.ts';
import type { ServiceStateReader } from './health/service-state-reader.ts';
import { errorLog, type ServiceLog } from './log/rate-limited-log.ts';
import type { Metrics } from './metrics.ts';
import { createServer } from './node-http.ts';
import { json, type OpsResponse } from './ops-response.ts';

/** An idle connection stays open for this long: longer than the scrape interval of Prometheus. */
const OPS_KEEP_ALIVE_MS = 72_000;

const NO_SUCH_PATH = 'there is nothing at this path; try GET /livez, GET /readyz or GET /metrics';
const PLANTS_ELSEWHERE =
  'this listener is for operators and takes no plants; send POST /plants to the address of --listen';
const CONSOLE_PATH = '/console/';

/** Errors of Node's HTTP parser, by the codes of Node and of llhttp. */
const PARSER_ERRORS: Record<string, ErrorName> = {
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'headersTooLarge',
  ERR_HTTP_REQUEST_TIMEOUT: 'tooSlow',
};

/** The response to an error of Node's event `clientError`. */
function parserError({ code }: NodeJS.ErrnoException): HttpResponse {
  return errorResponse(PARSER_ERRORS[code ?? ''] ?? 'badHttp');
}

/** The page below `/console/`. */
export interface OpsPage {
  /**
   * Responds to a request.
   *
   * @param path what follows `/console/`
   * @param query what follows the question mark
   * @returns undefined if it has responded itself
   */
  respond(
    path: string,
    query: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<OpsResponse | undefined>;
}

interface OpsServer {
  listen(reserved: ReservedAddress): Promise<AddressInfo>;
  /** Closes all connections, also those in use. */
  close(): Promise<void>;
}

interface OpsParts {
  stateReader: Pick<ServiceStateReader, 'read'>;
  metrics: Metrics;
  /** The configured names, for {@link isAllowedHost}. */
  hostNames: readonly string[];
  /** Undefined if the console is off. */
  page: OpsPage | undefined;
  log: ServiceLog;
}

/** This is not in the error catalogue, which contains only errors for clients. */
const MISDIRECTED: ErrorBody = {
  error: 42101,
  message:
    'the name in the Host field is not allowed; use localhost or an IP address, or start the service with --ops-host NAME',
};

/**
 * The listener for operators and orchestrators. It is separate, so that clients need not reach it.
 *
 * - `GET /livez`: 200 as long as the process responds. It does not use the store.
 * - `GET /readyz`: 200 with warnings if plants can be stored, else 503; `?verbose` adds all checks.
 * - `GET /metrics`: metrics for Prometheus.
 * - `/console/`: the page for operators, if it is on.
 *
 * A Host field that {@link isAllowedHost} does not allow gets 421 (RFC 9110 section 15.5.20).
 */
export function opsServer(parts: OpsParts): OpsServer {
  // Node's response to a missing Host lacks our header fields. So `responseTo` checks Host itself.
  const server = createServer({ requireHostHeader: false, keepAliveTimeout: OPS_KEEP_ALIVE_MS });
  const responseHeaders = new ResponseHeaders();
  const onInternalError = errorLog(parts.log, 'a request for operators failed: unexpected internal error');
  // Node emits `checkExpectation` instead of `request` for an unknown value of the field Expect.
  for (const event of ['request', 'checkExpectation'])
    server.on(event, (request, response) => respond(parts, onInternalError, request, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = parserError(error);
    if (socket.writable) socket.end(responseHeaders.textOf(response, true) + response.body);
    else socket.destroy();
  });
  return {
    listen: reserved => reserved.handOver(server),
    async close() {
      const closed = new Promise(resolve => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function respond(
  parts: OpsParts,
  onInternalError: (cause: unknown) => void,
  request: IncomingMessage,
  serverResponse: ServerResponse,
): Promise<void> {
  const response = await responseTo(parts, request, serverResponse).catch(cause => {
    onInternalError(cause);
    return errorResponse('internal');
  });
  // A download that failed has sent its headers, and has closed its connection.
  if (response === undefined || serverResponse.headersSent) return;
  serverResponse.writeHead(response.status, [...response.fields, ...COMMON_FIELDS]).end(response.body);
}

async function responseTo(
  { stateReader, metrics, hostNames, page }: OpsParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<OpsResponse | undefined> {
  const { method = '', url = '', httpVersion } = request;
  const { host: hosts = [] } = request.headersDistinct;
  // RFC 9112 section 3.2: exactly one Host field, optional in HTTP/1.0.
  if (hosts.length > 1 || (httpVersion === '1.1' && hosts.length === 0)) {
    response.shouldKeepAlive = false;
    return errorResponse('badHttp');
  }
  if (!hosts.every(host => isAllowedHost(host, hostNames))) return json(MISDIRECTED, 421);
  const [path = '', query = ''] = url.split('?', 2);
  if (page !== undefined) {
    if (path.startsWith(CONSOLE_PATH))
      return await page.respond(path.slice(CONSOLE_PATH.length), query, request, response);
    if (['/', '/console'].includes(path))
      return contentResponse('text/plain', '', ['Location', 'console/'], 303);
  }
  if (path === '/plants') return errorResponse('noSuchPath', PLANTS_ELSEWHERE);
  if (!['GET', 'HEAD'].includes(method)) return errorResponse('noSuchPath', NO_SUCH_PATH);
  switch (path) {
    case '/livez':
      return json({ status: 'live' });
    case '/readyz': {
      const { checks, ...readiness } = readinessOf(await stateReader.read());
      const body = new URLSearchParams(query).has('verbose') ? { ...readiness, checks } : readiness;
      return json(body, readiness.status === 'ready' ? 200 : 503);
    }
    case '/metrics':
      return contentResponse(metrics.registry.contentType, await metrics.text(await stateReader.read()));
    default:
      return errorResponse('noSuchPath', NO_SUCH_PATH);
  }
}
