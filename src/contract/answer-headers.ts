/** On every answer of both listeners: its type is what it says, and no cache keeps it. */
export const COMMON_HEADERS = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' };
