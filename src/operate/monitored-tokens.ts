import { TokenCache } from '../core/tokens/token-cache.ts';
import type { TokenTable } from '../engines/tables/token-table.ts';
import type { KnownDamage } from './health/known-damage.ts';
import { rateLimitedLog, type ServiceLog } from './log/rate-limited-log.ts';

/** Opens the tokens of a store. Failures to read or write them are logged, damage is recorded. */
export function openMonitoredTokens(
  tokenTable: TokenTable,
  damage: KnownDamage,
  log: ServiceLog,
): Promise<TokenCache> {
  const message = 'the token table cannot be read or written; after 4 s unread, creates get 503';
  const logFailure = rateLimitedLog(details => log.warn(details, message));
  return TokenCache.open(tokenTable, damage.listener('reading tokens', logFailure));
}
