import { foldedParts } from './folded-text.ts';
import type { AddValue } from './plant-search.ts';

interface NameCondition {
  /** SQL: whether the name, with the letters of ASCII in lower case, contains the text of a parameter. */
  contains: (parameter: string) => string;
  /** SQL: whether the name matches by the rule of `folded-text.ts`. */
  isMatch: string;
}

/**
 * Returns SQL: whether a name contains a part. The rule itself takes long, so a comparison of texts
 * decides for most names. A name that contains a folded part as it is matches. Other names match
 * only if the rule changes more than the case of ASCII letters, or removes a sign of a hybrid
 * between two words.
 *
 * It does not use LIKE, which takes many seconds for a long part and a name that repeats its start,
 * and on SQLite does not distinguish all characters.
 */
export function nameCondition(part: string, add: AddValue, { contains, isMatch }: NameCondition): string {
  const parts = foldedParts(part);
  const found = parts.map(each => contains(add(each)));
  const changing = ['octet_length(name) > length(name)'];
  if (parts.some(each => each.includes(' '))) changing.push(contains(add(' x ')));
  return `(${found.join(' OR ')} OR (${changing.join(' OR ')}) AND ${isMatch})`;
}
