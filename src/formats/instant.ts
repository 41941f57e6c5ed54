/**
 * The form of RFC 3339, also without seconds. SQLite reads it, too, so the SQL of
 * docs/operate/corrections.md works with the same text. SQLite has no longer offsets and fractions.
 */
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::[0-5]\d(?:\.\d{1,3})?)?(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)$/;

/**
 * Reads a time of RFC 3339, also without seconds. A time without a zone could mean UTC, the zone
 * of this machine or that of the person, so it is none.
 *
 * @returns milliseconds since 1970 UTC; undefined if the text is no such time
 */
export function instantOf(text: string): number | undefined {
  if (!TIME.test(text)) return undefined;
  try {
    return Temporal.Instant.from(text).epochMilliseconds;
  } catch {
    return undefined;
  }
}
