/**
 * The rule by which a search compares names. Case and accents do not matter, some letters equal
 * plain ones, and a sign of a hybrid does not matter. An engine may apply the rule in SQL, so it
 * consists of regular expressions and replaced texts, which mean the same there.
 */

/**
 * The marks of Latin, Greek and Cyrillic letters (Unicode block Combining Diacritical Marks). Marks
 * of other scripts may be vowels.
 */
export const MARKS = String.raw`[\u0300-\u036f]`;

/**
 * Letters that Unicode does not decompose, the sigmas, and the no-break space. Capital letters are
 * here, too, because some locales of PostgreSQL know no lower case beyond ASCII.
 */
export const PLAIN_LETTERS: readonly (readonly [letter: string, plain: string])[] = [
  ['ß', 'ss'],
  ['ẞ', 'ss'],
  ['æ', 'ae'],
  ['Æ', 'ae'],
  ['œ', 'oe'],
  ['Œ', 'oe'],
  ['ø', 'o'],
  ['Ø', 'o'],
  ['ł', 'l'],
  ['Ł', 'l'],
  ['đ', 'd'],
  ['Đ', 'd'],
  ['ı', 'i'],
  ['ς', 'σ'],
  ['Σ', 'σ'],
  ['\u00a0', ' '],
];

/** People also write the sign of a hybrid as this letter. */
export const SIGN_AND_LETTER = ['×', 'x'] as const;

/** A sign of a hybrid in a folded text: `×`, or `x` as a word. A sign at the end may be a letter. */
export const HYBRID_SIGN = '((^|(?<= ))x +|× *)(?=[^ ])';

const ALL_MARKS = new RegExp(MARKS, 'g');
const ALL_SIGNS = new RegExp(HYBRID_SIGN, 'g');
const PLAIN_LETTER = new Map(PLAIN_LETTERS);
const ALL_LETTERS = new RegExp(`[${[...PLAIN_LETTER.keys()].join('')}]`, 'g');

/** The text with each sign of a hybrid as the letter, and without these signs. */
function foldings(text: string): [withSigns: string, withoutSigns: string] {
  const withoutMarks = text.normalize('NFD').replace(ALL_MARKS, '');
  const folded = withoutMarks.replace(ALL_LETTERS, letter => PLAIN_LETTER.get(letter)!).toLowerCase();
  return [
    folded.replaceAll(...SIGN_AND_LETTER),
    folded.replace(ALL_SIGNS, '').replaceAll(...SIGN_AND_LETTER),
  ];
}

/** The foldings of a part of a name: a name matches if a folding of it contains one of these. */
export function foldedParts(part: string): string[] {
  return [...new Set(foldings(part))];
}

/** Returns a function: whether a name contains the part. An empty part is in each name. */
export function nameMatcher(part: string): (name: string) => boolean {
  const parts = foldedParts(part);
  return name => foldings(name).some(folding => parts.some(each => folding.includes(each)));
}
