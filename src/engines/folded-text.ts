/**
 * Removes differences of case and accents from a text, for searches. It removes only the marks of
 * Latin, Greek and Cyrillic letters (Unicode block Combining Diacritical Marks), because marks of
 * other scripts may be vowels.
 */
export function folded(text: string): string {
  return text.normalize('NFD').replace(MARKS, '').toLowerCase();
}

const MARKS = /[\u0300-\u036f]/g;
