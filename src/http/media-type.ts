import { MIMEType } from 'node:util';
import { MEDIA_TYPE_LENGTH_MAX } from '../contract/limits.ts';

/** application/json, its charset, if it names one, utf-8; RFC 9110 section 8.3.1 lets both be in any case. */
export function isJsonMediaType(value: string): boolean {
  if (value === 'application/json') return true;
  // MIMEType takes quadratic time over some long values.
  if (value.length > MEDIA_TYPE_LENGTH_MAX) return false;
  try {
    const mediaType = new MIMEType(value);
    const charset = mediaType.params.get('charset')?.toLowerCase() ?? 'utf-8';
    return mediaType.essence === 'application/json' && charset === 'utf-8';
  } catch {
    return false;
  }
}
