import { StoreRejected } from '../core/commit/store-errors.ts';
import { hashToken, makeToken } from '../core/tokens/token.ts';
import type { TokenCache } from '../core/tokens/token-cache.ts';
import type { StorageEngine } from '../engines/storage-engine.ts';
import { isLoopback, type ListenAddress } from '../server/listen-address.ts';
import type { ServiceLog } from './log/rate-limited-log.ts';

export type FirstToken =
  | { kind: 'made'; token: string }
  /** The store already has a token. */
  | { kind: 'exists' }
  | { kind: 'none' };

interface FirstTokenSettings {
  listen: ListenAddress;
  /** Called before the store has the token. If it returns false, the store gets none. */
  handOverFirstToken: (token: string) => boolean;
  log: ServiceLog;
}

/**
 * Makes the first token of a store that has neither tokens nor plants, if only this machine can
 * reach the service.
 *
 * @returns `none` also if `handOverFirstToken` returned false, or the database user of the service
 *   may not create tokens
 */
export async function makeFirstToken(
  tokens: TokenCache,
  engine: Pick<StorageEngine, 'firstPlantAt' | 'tokenTable'>,
  { listen, handOverFirstToken, log }: FirstTokenSettings,
): Promise<FirstToken> {
  if (tokens.size > 0) return { kind: 'exists' };
  if (!isLoopback(listen) || (await engine.firstPlantAt()) !== undefined) return { kind: 'none' };
  const token = makeToken();
  if (!handOverFirstToken(token)) return { kind: 'none' };
  try {
    const stored = await engine.tokenTable.createToken({
      hash: hashToken(token),
      label: 'first',
      createdAt: Date.now(),
      expiresAt: null,
    });
    // Another instance has just made the first token.
    if (stored === undefined) return { kind: 'exists' };
    tokens.add(stored);
    return { kind: 'made', token };
  } catch (cause) {
    if (!(cause instanceof StoreRejected)) throw cause;
    log.info(
      'no first token: this database user may not create tokens; create one as the owner of the store',
    );
    return { kind: 'none' };
  }
}
