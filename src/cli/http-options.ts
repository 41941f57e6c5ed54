import { InvalidArgumentError } from 'commander';
import { RATE_LIMIT_REQUESTS_MAX } from '../contract/limits.ts';
import type { AllowedOrigins, RateLimitPolicy } from '../service.ts';

/** A browser compares origins as texts, so each must be written as it writes them (RFC 6454 section 6.2). */
export function parseOrigins(text: string): AllowedOrigins {
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

export function parseRateLimit(text: string): RateLimitPolicy {
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
