/**
 * A text without differences of case and accents, for searches. The marks are those of Latin, Greek
 * and Cyrillic letters (Unicode block Combining Diacritical Marks). Elsewhere, marks are vowels.
 */
export function folded(text: string): string {
  return text.normalize('NFD').replace(MARKS, '').toLowerCase();
}

const MARKS = /[\u0300-\u036f]/g;
