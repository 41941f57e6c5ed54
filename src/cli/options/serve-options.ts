import { type Command, InvalidArgumentError, type Option } from 'commander';
import { isBaseUrl } from '../../client/transport.ts';
import type { RepeatedIdRule } from '../../core/commit/plant-commits.ts';
import { BODY_MAX_BYTES } from '../../core/contract/limits.ts';
import type { RateLimitPolicy } from '../../core/tokens/rate-limit.ts';
import { trustedProxiesOf } from '../../server/client-address.ts';
import type { AllowedOrigins } from '../../server/cross-origin.ts';
import { type ListenAddress, listenAddressOf } from '../../server/listen-address.ts';
import type { Extra } from '../extra.ts';
import { addDatabaseOptions, type DatabaseOptions } from '../shared/database-option.ts';
import { choice, countUpTo, setting } from '../shared/setting.ts';

export const BODY_LIMIT_MAX = 8 * 1024 * 1024;
/** Default number of connections that write plants. */
export const CONNECTIONS_DEFAULT = 4;
/** Maximum of `--connections`. A database server gets slower with more connections. */
const CONNECTIONS_MAX = 64;
const RATE_LIMIT_REQUESTS_MAX = 1_000_000;

export interface ServeOptions extends DatabaseOptions {
  listen: ListenAddress;
  ops: ListenAddress;
  opsHost?: string[];
  repeatedId: RepeatedIdRule;
  bodyLimit: number;
  connections: number;
  logRequests: 'on' | 'off';
  docs: 'on' | 'off';
  /** Without a final slash. */
  publicUrl?: string;
  /** Undefined: on if `ops` is a loopback address. */
  console?: 'on' | 'off';
  corsOrigin?: AllowedOrigins;
  trustProxy?: string[];
  rateLimit?: RateLimitPolicy;
}

const REPEATED_ID =
  'what to do when a plant has a stored id but different content: add a revision, or reject the plant';
const BODY_LIMIT = 'largest request body in bytes';
const CONNECTIONS =
  'number of PostgreSQL connections that write plants; the service opens four more: one for tokens, one for checks, and two for searches in the console';
const RATE_LIMIT = 'how many requests each token may send, such as 100/s or 6000/min (default: no limit)';
const CONSOLE =
  'serve the console, a page for operators, on --ops (default: on if --ops is a loopback address)';
const ORIGINS = 'origins of web pages that may send plants, separated by commas; * allows all';
const PUBLIC_URL = 'address of the service for clients, which /docs and /openapi.json show';
const PROXIES =
  'addresses and networks of proxies, separated by commas; logs, traces and the console show the client that they name in X-Forwarded-For';
const OPS_HOSTS =
  'more host names that requests to --ops may use, separated by commas; localhost and IP addresses always work';

/** Adds the options of a service, with those of the extras. */
export function addServeOptions(
  command: Command,
  extras: readonly Extra[],
  databaseDefault?: string,
): Command {
  const settings = [
    setting('--listen <host:port>', 'address to which clients send plants', parseAddress, '127.0.0.1:8080'),
    opsSetting(),
    setting('--ops-host <names>', OPS_HOSTS, parseHostNames),
    choice('--repeated-id <rule>', REPEATED_ID, ['revise', 'reject'], 'revise'),
    setting('--body-limit <bytes>', BODY_LIMIT, countUpTo(BODY_LIMIT_MAX), BODY_MAX_BYTES),
    setting('--connections <count>', CONNECTIONS, countUpTo(CONNECTIONS_MAX), CONNECTIONS_DEFAULT),
    choice('--log-requests <on|off>', 'write a log line for each request', ['on', 'off'], 'off'),
    choice('--docs <on|off>', 'serve /docs and /openapi.json', ['on', 'off'], 'on'),
    setting('--public-url <URL>', PUBLIC_URL, parsePublicUrl),
    setting('--console <on|off>', CONSOLE).choices(['on', 'off']),
    setting('--rate-limit <rate>', RATE_LIMIT, parseRateLimit),
    setting('--cors-origin <origins>', ORIGINS, parseOrigins),
    setting('--trust-proxy <addresses>', PROXIES, parseProxies),
  ];
  for (const { serveOptions } of extras) settings.push(...(serveOptions?.() ?? []));
  for (const each of settings) command.addOption(each);
  return addDatabaseOptions(command, databaseDefault);
}

/** The setting `--ops`, which other commands use to find the service. */
export function opsSetting(): Option {
  const description = 'address of /livez, /readyz, /metrics and the console';
  return setting('--ops <host:port>', description, parseAddress, '127.0.0.1:8081');
}

function parseAddress(text: string): ListenAddress {
  const address = listenAddressOf(text);
  if (address !== undefined) return address;
  throw new InvalidArgumentError('Write HOST:PORT or PORT, for example 127.0.0.1:8080 or [::1]:8080.');
}

function parseHostNames(text: string): string[] {
  const names = text.split(',').map(each => each.trim());
  if (!names.every(each => /^[\w-]+(?:\.[\w-]+)*\.?$/.test(each)))
    throw new InvalidArgumentError('Write each as a host name without a port, for example plants.internal.');
  return names;
}

function parsePublicUrl(text: string): string {
  const url = URL.parse(text);
  if (url !== null && isBaseUrl(url)) return url.origin + url.pathname.replace(/\/+$/, '');
  throw new InvalidArgumentError(
    'Write an http or https address without user name, password, ? or #, for example https://plants.example/garden.',
  );
}

/** Browsers compare origins as text, so the spelling must be exact (RFC 6454 section 6.2). */
function parseOrigins(text: string): AllowedOrigins {
  if (text === '*') return text;
  const origins = text.split(',').map(each => each.trim());
  for (const origin of origins) {
    const url = URL.parse(origin);
    if (url === null || !['http:', 'https:'].includes(url.protocol) || origin.includes('*'))
      throw new InvalidArgumentError(
        'Write each as SCHEME://HOST or SCHEME://HOST:PORT, for example https://plants.example. Patterns are not possible; only * alone allows all.',
      );
    if (url.origin !== origin)
      throw new InvalidArgumentError(
        `Write ${url.origin}, as browsers do: without a path and without the default port.`,
      );
  }
  return origins;
}

function parseProxies(text: string): string[] {
  const proxies = text.split(',').map(each => each.trim());
  for (const proxy of proxies) {
    try {
      trustedProxiesOf([proxy]);
    } catch {
      throw new InvalidArgumentError(
        `${JSON.stringify(proxy)} is no IP address and no network such as 10.0.0.0/8; separate several by commas.`,
      );
    }
  }
  return proxies;
}

const WINDOW_SECONDS: Record<string, number> = { s: 1, min: 60 };

/** The text of a limit that `--rate-limit` has set. */
export function rateLimitText({ requests, windowSeconds }: RateLimitPolicy): string {
  const [unit] = Object.entries(WINDOW_SECONDS).find(([, seconds]) => seconds === windowSeconds)!;
  return `${requests}/${unit}`;
}

function parseRateLimit(text: string): RateLimitPolicy {
  const [, digits = '', unit = ''] = /^([0-9]{1,9})\/(s|min)$/.exec(text) ?? [];
  const requests = Number(digits);
  const windowSeconds = WINDOW_SECONDS[unit];
  if (windowSeconds === undefined || requests < 1 || requests > RATE_LIMIT_REQUESTS_MAX)
    throw new InvalidArgumentError(
      `Write it as COUNT/s or COUNT/min with a count from 1 to ${RATE_LIMIT_REQUESTS_MAX}, for example 100/s.`,
    );
  return { requests, windowSeconds };
}
