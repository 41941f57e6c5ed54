import { TOKEN_EXPIRY_MAX_MS } from '../../core/tokens/stored-token.ts';
import { hashToken, makeToken } from '../../core/tokens/token.ts';
import type { TokenCache } from '../../core/tokens/token-cache.ts';
import type { TokenTable } from '../../engines/tables/token-table.ts';
import { isTokenLabel, SUBJECT_LABEL_LENGTH_MAX, TOKEN_LABEL_LENGTH_MAX } from '../../formats/token-label.ts';
import type { ServiceLog } from '../log/rate-limited-log.ts';
import { json, type OpsResponse } from '../ops-response.ts';
import { type ApiRequest, failure, InvalidApiRequest, noContent } from './api-requests.ts';

interface TokenParts {
  tokenTable: TokenTable;
  /** A change here takes effect at once. */
  tokens: Pick<TokenCache, 'add'>;
  log: ServiceLog;
}

/** The requests of the screen Tokens. */
export class TokenRequests {
  readonly #parts: TokenParts;

  constructor(parts: TokenParts) {
    this.#parts = parts;
  }

  /** @param lastUses the time of the last use since the start by token id, ms since 1970 */
  async list(lastUses: ReadonlyMap<number, number>): Promise<OpsResponse> {
    const tokens = await this.#parts.tokenTable.tokens();
    const shown = tokens.map(({ id, label, createdAt, expiresAt, revokedAt, lastUsedDay }) => {
      const lastUsedAt = lastUses.get(id) ?? null;
      return { label, createdAt, expiresAt, revokedAt, lastUsedDay, lastUsedAt };
    });
    return json({ tokens: shown.sort((a, b) => a.createdAt - b.createdAt) });
  }

  /** @throws {InvalidApiRequest} */
  async create({ label, expiresAt = null }: ApiRequest['body']): Promise<OpsResponse> {
    const { tokenTable, tokens, log } = this.#parts;
    const createdAt = Date.now();
    if (typeof label !== 'string' || !isTokenLabel(label))
      throw new InvalidApiRequest(
        `the label must have 1 to ${TOKEN_LABEL_LENGTH_MAX} characters, without invisible characters and blanks at the ends`,
      );
    if (expiresAt !== null && !isExpiry(expiresAt, createdAt))
      throw new InvalidApiRequest('the token must expire in the future, and before the year 275760');
    const token = makeToken();
    const stored = await tokenTable.createToken({ hash: hashToken(token), label, createdAt, expiresAt });
    if (stored === undefined) return failure(409, 'another token has this label; choose another one');
    tokens.add(stored);
    log.info(`an operator created the token ${JSON.stringify(label)} in the console`);
    return json({ token }, 201);
  }

  /** @throws {InvalidApiRequest} */
  async revoke({ label }: ApiRequest['body']): Promise<OpsResponse> {
    const { tokenTable, tokens, log } = this.#parts;
    const isLabel = typeof label === 'string' && isTokenLabel(label, SUBJECT_LABEL_LENGTH_MAX);
    const revoked = isLabel ? await tokenTable.revokeToken(label, Date.now()) : undefined;
    if (revoked === undefined) throw new InvalidApiRequest('no token has this label');
    tokens.add(revoked);
    log.info(`an operator revoked the token ${JSON.stringify(revoked.label)} in the console`);
    return noContent();
  }
}

/** Whether a time is in ms, after `createdAt`, and not too late for a date. */
function isExpiry(time: unknown, createdAt: number): time is number {
  return Number.isSafeInteger(time) && Number(time) > createdAt && Number(time) <= TOKEN_EXPIRY_MAX_MS;
}
