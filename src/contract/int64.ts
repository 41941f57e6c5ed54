import { ID_MAX, ID_MIN } from './limits.ts';

// RFC 8259 section 6: number = [ minus ] int [ frac ] [ exp ].
const JSON_NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;
/** Digits of the largest id, 9223372036854775807. */
const ID_DIGITS_MAX = 19;

/**
 * Reads a JSON number as a 64-bit integer, judged on its digits: `1.0`, `1e3` and `-0` are the integers 1, 1000
 * and 0 (JSON Schema 2020-12 core, section 4.2.2: an integer is a number with a zero fractional part), while
 * `9007199254740993.5` and `1e-400` are none, though a double would round them to one.
 *
 * @returns the integer, or undefined when the text is no JSON number, no integer, or beyond 64 bits
 */
export function int64FromNumberText(text: string): bigint | undefined {
  const parts = JSON_NUMBER.exec(text);
  if (parts === null) return undefined;
  const [, minus, whole = '', fraction = '', exponentText = '0'] = parts;

  // The value is digits × 10^exponent, with digits free of zeros at both ends. Nothing here is ever expanded, so
  // an exponent of a million digits costs no more than reading it.
  const coefficient = (whole + fraction).replace(/^0+/, '');
  if (coefficient === '') return 0n;
  const trailingZeros = countTrailingZeros(coefficient);
  const digits = coefficient.slice(0, coefficient.length - trailingZeros);
  // Beyond 2^53 this loses digits of the exponent or becomes infinite; the verdict below is the same either way.
  const exponent = Number(exponentText) - fraction.length + trailingZeros;

  if (exponent < 0 || digits.length + exponent > ID_DIGITS_MAX) return undefined;
  const value = BigInt(minus + digits + '0'.repeat(exponent));
  return isInt64(value) ? value : undefined;
}

/** Whether a bigint fits 64 bits with a sign. */
export function isInt64(value: bigint): boolean {
  return value >= ID_MIN && value <= ID_MAX;
}

/** Without a regular expression, which would try again at each zero of the text. */
function countTrailingZeros(digits: string): number {
  let count = 0;
  while (digits.charCodeAt(digits.length - 1 - count) === 48) count++;
  return count;
}
