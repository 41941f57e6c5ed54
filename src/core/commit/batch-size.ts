export const BATCH_PLANTS_MAX = 2_048;
/** Text in one commit, in UTF-16 code units. */
export const BATCH_TEXT_LENGTH_MAX = 8 * 1024 * 1024;

/**
 * Limits the items of a batch, and the length of their text. One item always fits.
 *
 * @returns a function that adds an item if it fits, and returns whether it fits
 */
export function batchSize(countMax = BATCH_PLANTS_MAX, textLengthMax = BATCH_TEXT_LENGTH_MAX) {
  let count = 0;
  let length = 0;
  return (textLength: number): boolean => {
    const isFull = count === countMax || length + textLength > textLengthMax;
    if (isFull && count > 0) return false;
    count++;
    length += textLength;
    return true;
  };
}

/** The length of the text of a row of `plant_revision`, in bytes. */
export const TEXT_BYTES = 'octet_length(name) + coalesce(octet_length(tag), 0)';

/**
 * Counts how many of the first rows fit a batch.
 *
 * @param rows have their {@link TEXT_BYTES} as the last column
 */
export function countThatFits(rows: readonly (readonly unknown[])[]): number {
  const addIfFits = batchSize(Infinity);
  const beyond = rows.findIndex(row => !addIfFits(Number(row.at(-1))));
  return beyond === -1 ? rows.length : beyond;
}

/** The length of the text of a plant, in UTF-16 code units. */
export function textLengthOf({ name, tag = '' }: { name: string; tag?: string }): number {
  return name.length + tag.length;
}
