/** Reads the header Retry-After (RFC 9110 section 10.2.3): seconds, or a date. @returns ms from now; 0 without one */
export function readRetryAfterMs(text: string | undefined): number {
  if (text === undefined) return 0;
  const ms = /^[0-9]+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(ms, 0) : 0;
}
