import { ID_MAX, ID_MIN } from './limits.ts';

// RFC 8259 section 6: number = [ minus ] int [ frac ] [ exp ].
const JSON_NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;
/** Digits of the largest id, 9223372036854775807. */
const ID_DIGITS_MAX = 19;

/**
 * Reads a JSON number as a 64-bit integer, from its digits. An integer is a number with a zero
 * fractional part (JSON Schema 2020-12 core, section 4.2.2), such as `1.0`, `1e3` and `-0`. A
 * double rounds `9007199254740993.5` and `1e-400` to integers, but they are none.
 *
 * @returns undefined if the text is no JSON number, no integer, or does not fit 64 bits
 */
export function int64FromNumberText(text: string): bigint | undefined {
  const parts = JSON_NUMBER.exec(text);
  if (parts === null) return undefined;
  const [, minus, whole = '', fraction = '', exponentText = '0'] = parts;

  // The value is digits × 10^exponent; digits neither begins nor ends with a zero. The length is
  // checked before the number is expanded, so a huge exponent costs no memory.
  const coefficient = (whole + fraction).replace(/^0+/, '');
  if (coefficient === '') return 0n;
  const trailingZeros = countTrailingZeros(coefficient);
  const digits = coefficient.slice(0, coefficient.length - trailingZeros);
  // An exponent above 2^53 is rounded or infinite. The check below rejects the number anyway.
  const exponent = Number(exponentText) - fraction.length + trailingZeros;

  if (exponent < 0 || digits.length + exponent > ID_DIGITS_MAX) return undefined;
  const value = BigInt(minus + digits + '0'.repeat(exponent));
  return isInt64(value) ? value : undefined;
}

/** Whether a bigint fits a signed 64-bit integer. */
export function isInt64(value: bigint): boolean {
  return value >= ID_MIN && value <= ID_MAX;
}

/** A regular expression would start again at each zero and take quadratic time. */
function countTrailingZeros(digits: string): number {
  let count = 0;
  while (digits.charCodeAt(digits.length - 1 - count) === 48) count++;
  return count;
}
