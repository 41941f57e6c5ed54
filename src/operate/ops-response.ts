import type { HeaderFields } from '../core/header-fields.ts';
import { jsonResponse } from '../core/response.ts';

/** A response to an operator. It may have any status, since Node's server knows their texts. */
export interface OpsResponse {
  status: number;
  fields: HeaderFields;
  body: string | Uint8Array;
}

/** A response with JSON. Its other header fields are `fields`: names and values in turn. */
export function json(content: object, status = 200, fields?: HeaderFields): OpsResponse {
  return { ...jsonResponse(200, JSON.stringify(content), fields), status };
}
