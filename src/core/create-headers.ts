import type { ErrorName } from './contract/errors.ts';
import { fieldValues, type HeaderFields, isJsonMediaType } from './header-fields.ts';
import type { BodyFraming, RequestHeaders } from './request.ts';
import { revisionConditionOf } from './revision-condition.ts';
import { bearerToken, hashToken } from './tokens/token.ts';

/** A create with valid header fields. If its body is short, only its token must be looked up. */
export interface CreateHeaders {
  /** The hash of a token of this service, or of an access token of another issuer. */
  bearerHash: string;
  framing: BodyFraming;
  /** As `ifRevision` of a write. */
  ifRevision: number | undefined;
}

/** @returns undefined for any other request, also one that will be rejected */
export function createHeadersOf({
  method,
  path,
  framing,
  fields,
  expectsContinue,
}: RequestHeaders): CreateHeaders | undefined {
  if (method !== 'POST' || path !== '/plants' || expectsContinue) return undefined;
  const token = bearerToken(fieldValues(fields, 'authorization'));
  if (token === undefined || contentError(fields) !== undefined) return undefined;
  const condition = revisionConditionOf(fields);
  if (condition.kind === 'invalid') return undefined;
  return { bearerHash: hashToken(token), framing, ifRevision: condition.ifRevision };
}

/** Why a body with these header fields cannot be read; undefined if it can. */
export function contentError(fields: HeaderFields): ErrorName | undefined {
  if (fieldValues(fields, 'content-encoding').length > 0) return 'contentEncoding';
  const mediaTypes = fieldValues(fields, 'content-type');
  return mediaTypes.length === 1 && isJsonMediaType(mediaTypes[0]!) ? undefined : 'notJsonMediaType';
}
