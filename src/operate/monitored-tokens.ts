import { TokenCache } from '../core/tokens/token-cache.ts';
import type { StorageEngine } from '../engines/storage-engine.ts';
import type { KnownDamage } from './known-damage.ts';
import { rateLimitedLog, type ServiceLog } from './rate-limited-log.ts';

/** Opens the tokens of a store. Failures to read or write them are logged, damage is recorded. */
export function openMonitoredTokens(
  engine: StorageEngine,
  damage: KnownDamage,
  log: ServiceLog,
): Promise<TokenCache> {
  const message = 'the token table cannot be read or written; after 4 s unread, creates get 503';
  const logFailure = rateLimitedLog(details => log.warn(details, message));
  return TokenCache.open(engine, damage.listener('reading tokens', logFailure));
}
