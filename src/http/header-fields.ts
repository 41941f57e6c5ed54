import { MIMEType } from 'node:util';
import { MEDIA_TYPE_LENGTH_MAX } from './limits.ts';

/**
 * Lists the values of a header field, in order.
 *
 * Node's own `headers` keeps one Authorization, Host or Content-Type of several and drops the rest unseen.
 *
 * @param rawHeaders names and values in turn, as Node gives them
 * @param name of the field, in lower case
 */
export function fieldValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders[index]!;
    // The length first: this runs over every field of every request.
    if (field.length === name.length && field.toLowerCase() === name) values.push(rawHeaders[index + 1]!);
  }
  return values;
}

/** application/json, its charset, if it names one, utf-8; RFC 9110 section 8.3.1 lets both be in any case. */
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
