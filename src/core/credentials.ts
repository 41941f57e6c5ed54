import type { ErrorName } from './contract/errors.ts';
import type { CredentialValidator } from './extension-points.ts';
import type { ReceivedRequest } from './request.ts';
import { hashToken, isWellFormed } from './tokens/token.ts';
import type { TokenCache } from './tokens/token-cache.ts';

const TOKEN_UNCHECKED = 'the store does not respond, so the token cannot be checked; send it again';

/** A message replaces that of the error catalogue. */
export interface RejectedCredential {
  kind: 'rejected';
  error: ErrorName;
  message?: string;
}

/**
 * Finds the stored token that a bearer token leads to, and its id. This is the bearer token itself,
 * or the stored token that a validator names.
 */
export class Credentials {
  readonly #tokens: TokenCache;
  readonly #validators: readonly CredentialValidator[];

  /** @param validators they validate the tokens of other issuers */
  constructor(tokens: TokenCache, validators: readonly CredentialValidator[]) {
    this.#tokens = tokens;
    this.#validators = validators;
  }

  /** Finds the hash of the stored token. It waits for validators if necessary. */
  async validate(
    token: string,
    request: ReceivedRequest,
  ): Promise<{ kind: 'valid'; storedHash: string } | RejectedCredential> {
    if (isWellFormed(token)) return { kind: 'valid', storedHash: hashToken(token) };
    for (const validator of this.#validators) {
      const validation = await validator.validate(token, request);
      switch (validation.kind) {
        case 'valid':
          return validation;
        case 'unchecked':
          return { kind: 'rejected', error: 'storeUnavailable', message: validation.message };
        case 'rejected':
          if (validation.message !== undefined)
            return { kind: 'rejected', error: 'tokenRejected', message: validation.message };
      }
    }
    return { kind: 'rejected', error: 'tokenRejected' };
  }

  /** Finds the id of a stored token that is valid. It waits for the store if necessary. */
  async lookUp(
    storedHash: string,
    request: ReceivedRequest,
  ): Promise<{ kind: 'valid'; id: number } | RejectedCredential> {
    const lookup = await this.#tokens.lookUp(storedHash);
    switch (lookup.kind) {
      case 'valid':
        return lookup;
      case 'rejected':
        for (const validator of this.#validators) validator.onRejected(storedHash, request);
        return { kind: 'rejected', error: 'tokenRejected' };
      case 'storeUnavailable':
        return { kind: 'rejected', error: 'storeUnavailable', message: TOKEN_UNCHECKED };
    }
  }

  /** The id of a stored token, even of one that is rejected. */
  idOf(storedHash: string): number | undefined {
    return this.#tokens.get(storedHash)?.id;
  }

  /**
   * Does {@link validate} and {@link lookUp} for a bearer token that is cached and known to be valid.
   *
   * The form of the token is not checked ({@link isWellFormed}), because no stored token has the hash
   * of a bearer token of another form. `CredentialValidation` requires this of validators.
   *
   * @param bearerHash the hash of the bearer token
   */
  cachedIdOf(bearerHash: string): number | undefined {
    for (const validator of this.#validators) {
      const storedHash = validator.storedHashOf(bearerHash);
      if (storedHash !== undefined) return this.#tokens.lookUpCached(storedHash);
    }
    return this.#tokens.lookUpCached(bearerHash);
  }
}
