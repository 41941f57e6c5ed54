import { batchLimiter } from '../../core/commit/batch-size.ts';

/** Text of the rows that one statement returns, in bytes of UTF-8. A longer row is returned alone. */
const PAGE_TEXT_MAX_BYTES = 8 * 1024 * 1024;

/** SQL: the text of a row of `plant_revision`, in bytes of UTF-8. */
export const TEXT_BYTES = 'octet_length(name) + coalesce(octet_length(tag), 0)';

/**
 * Counts how many of the first rows fit a page.
 *
 * @param rows have their {@link TEXT_BYTES} as the last column
 */
export function countThatFits(rows: readonly (readonly unknown[])[]): number {
  const addIfFits = batchLimiter(Infinity, PAGE_TEXT_MAX_BYTES);
  const beyond = rows.findIndex(row => !addIfFits(Number(row.at(-1))));
  return beyond === -1 ? rows.length : beyond;
}
