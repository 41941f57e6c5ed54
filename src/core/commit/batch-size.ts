export const BATCH_PLANTS_MAX = 2_048;
/** Text in one commit, in UTF-16 code units. */
export const BATCH_TEXT_LENGTH_MAX = 8 * 1024 * 1024;

/**
 * Limits the items of a batch, and the length of their text. One item always fits.
 *
 * @param textLengthMax in the unit of the lengths that are added, by default UTF-16 code units
 * @returns a function that adds an item if it fits, and returns whether it fits
 */
export function batchLimiter(countMax = BATCH_PLANTS_MAX, textLengthMax = BATCH_TEXT_LENGTH_MAX) {
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

/** The length of the text of a plant, in UTF-16 code units. */
export function textLengthOf({ name, tag = '' }: { name: string; tag?: string }): number {
  return name.length + tag.length;
}
