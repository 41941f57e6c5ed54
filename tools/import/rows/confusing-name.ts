import { MEMBERS } from './plant-row.ts';

const TAG = 'tag';
/** `tag` with two letters swapped. */
const SWAPPED = ['atg', 'tga'];
const PREFIX = 'ignored ';

/**
 * Whether a name that is not read may be a misspelt `tag`: it has another case, a letter more or
 * less, or two letters swapped, such as `tags`. A wrong id or name is missing, and so an error. Without
 * a tag, all plants would silently have none.
 */
export function isLikeTag(name: string): boolean {
  const key = name.trim().toLowerCase();
  return key === TAG || SWAPPED.includes(key) || shortened(key).includes(TAG) || shortened(TAG).includes(key);
}

/** All texts with one letter less. */
function shortened(text: string): string[] {
  return Array.from(text, (_, index) => text.slice(0, index) + text.slice(index + 1));
}

/**
 * The name that a column without meaning gets in a rejects file. A reader could confuse the column with
 * one of a plant.
 */
export function ignoredName(name: string): string {
  const key = name.trim().toLowerCase();
  return (MEMBERS as readonly string[]).includes(key) || isLikeTag(key) ? `${PREFIX}${name}` : name;
}

/**
 * The name of a column `id` in a rejects file whose ids are made of texts. Without the options of the
 * import, the column would be read as the id. With them, it is the column `id` again.
 */
export const IGNORED_ID = ignoredName('id');
