import { InvalidArgumentError, Option } from 'commander';
import { RATE_LIMIT_REQUESTS_MAX } from '../contract/limits.ts';
import type { AllowedOrigins, RateLimitPolicy } from '../service.ts';

/** What `serve` is told of its clients. */
export interface HttpOptions {
  corsOrigin?: AllowedOrigins;
  rateLimit?: RateLimitPolicy;
}

/** Which pages may use the service from a browser; none but its own when it is not given. */
export function corsOriginOption(): Option {
  return new Option(
    '--cors-origin <origins>',
    'pages that may send plants from a browser: origins with commas between them, or * for all',
  )
    .env('PLANT_STORE_CORS_ORIGIN')
    .argParser(parseOrigins);
}

/** How many requests each token may send; any number when it is not given. */
export function rateLimitOption(): Option {
  return new Option('--rate-limit <rate>', 'requests that each token may send, such as 100/s or 6000/min')
    .env('PLANT_STORE_RATE_LIMIT')
    .argParser(parseRateLimit);
}

/** A browser compares origins as texts, so each must be written as it writes them (RFC 6454 section 6.2). */
function parseOrigins(text: string): AllowedOrigins {
  if (text === '*') return text;
  const origins = text.split(',').map(each => each.trim());
  for (const origin of origins) {
    const url = URL.parse(origin);
    if (url === null || !['http:', 'https:'].includes(url.protocol)) {
      throw new InvalidArgumentError(
        'Write each as SCHEME://HOST or SCHEME://HOST:PORT, for example https://plants.example, or * alone for all.',
      );
    }
    if (url.origin !== origin) {
      throw new InvalidArgumentError(
        `Write ${url.origin}, as a browser does: no path, no port that the scheme implies.`,
      );
    }
  }
  return origins;
}

const WINDOW_SECONDS: Record<string, number> = { s: 1, min: 60 };

function parseRateLimit(text: string): RateLimitPolicy {
  const [, digits = '', unit = ''] = /^([0-9]{1,9})\/(s|min)$/.exec(text) ?? [];
  const requests = Number(digits);
  const windowSeconds = WINDOW_SECONDS[unit];
  if (windowSeconds === undefined || requests < 1 || requests > RATE_LIMIT_REQUESTS_MAX) {
    throw new InvalidArgumentError(
      `Write it as COUNT/s or COUNT/min with a count from 1 to ${RATE_LIMIT_REQUESTS_MAX}, for example 100/s.`,
    );
  }
  return { requests, windowSeconds };
}
