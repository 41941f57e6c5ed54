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
  const digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return 0n;
  // This many digits stand before the decimal point. It is checked before the number is expanded,
  // so a huge exponent costs no memory. An exponent above 2^53 is rounded, and rejected anyway.
  const length = digits.length - fraction.length + Number(exponentText);
  if (length < 1 || length > ID_DIGITS_MAX) return undefined;
  if (/[1-9]/.test(digits.slice(length))) return undefined;
  const value = BigInt(minus + digits.slice(0, length).padEnd(length, '0'));
  return isInt64(value) ? value : undefined;
}

export function isInt64(value: bigint): boolean {
  return value >= ID_MIN && value <= ID_MAX;
}
