const TAG = 'tag';
/** `tag` with two letters swapped. */
const SWAPPED = ['atg', 'tga'];

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
