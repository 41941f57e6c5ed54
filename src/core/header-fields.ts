import { MIMEType } from 'node:util';

/** Longest Content-Type that is parsed, because parsing takes quadratic time. JSON's is shorter. */
const MEDIA_TYPE_LENGTH_MAX = 200;

/**
 * A token of HTTP, such as a method or the name of a field (RFC 9110 section 5.6.2), as the source of
 * a regular expression.
 */
export const HTTP_TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";

/** Header fields like Node's `rawHeaders`: names and values alternate, and names may repeat. */
export type HeaderFields = readonly string[];

/**
 * Returns the values of all fields with a name. Node's `headers` silently drops a second
 * Authorization or Host.
 *
 * @param name in lower case
 */
export function fieldValues(fields: HeaderFields, name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const field = fields[index]!;
    // The length is compared first, because this runs for every field of every request.
    if (field.length === name.length && field.toLowerCase() === name) values.push(fields[index + 1]!);
  }
  return values;
}

/** Whether a media type is application/json, in UTF-8. RFC 9110 section 8.3.1: case-insensitive. */
export function isJsonMediaType(value: string): boolean {
  if (value === 'application/json') return true;
  if (value.length > MEDIA_TYPE_LENGTH_MAX) return false;
  try {
    const mediaType = new MIMEType(value);
    const charset = mediaType.params.get('charset')?.toLowerCase() ?? 'utf-8';
    return mediaType.essence === 'application/json' && charset === 'utf-8';
  } catch {
    return false;
  }
}
