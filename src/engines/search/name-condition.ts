import { foldedParts } from './folded-text.ts';
import type { AddValue } from './plant-search.ts';

interface NameCondition {
  /** SQL of the name for LIKE, which must not distinguish the case of ASCII letters. */
  name: string;
  /** SQL: whether the name matches by the rule of `folded-text.ts`. */
  isMatch: string;
}

/**
 * Returns SQL: whether a name contains a part. The rule itself takes long, so LIKE decides for most
 * names. A name that contains a folded part as it is matches. Other names match only if the rule
 * changes more than the case of ASCII letters, or removes a sign of a hybrid between two words.
 */
export function nameCondition(part: string, add: AddValue, { name, isMatch }: NameCondition): string {
  const parts = foldedParts(part);
  const found = parts.map(each => `${name} LIKE ${add(`%${each.replace(/[%_\\]/g, '\\$&')}%`)} ESCAPE '\\'`);
  const changing = ['octet_length(name) > length(name)'];
  if (parts.some(each => each.includes(' '))) changing.push(`${name} LIKE '% x %'`);
  return `(${found.join(' OR ')} OR (${changing.join(' OR ')}) AND ${isMatch})`;
}
