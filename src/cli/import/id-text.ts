import { int64FromNumberText } from '../../core/contract/int64.ts';
import { ID_MAX, ID_MIN } from '../../core/contract/limits.ts';
import { quoted } from './plant-row.ts';

/** Spreadsheets write long numbers as 9.00719925474099E+15, which has lost digits. */
const EXPONENT = /^[-+]?[0-9][0-9.,]*[eE][-+]?[0-9]+$/;
/** Spreadsheets of many countries write 1000 as 1.000, which would be 1 in JSON. */
const DOTS = /^[-+]?[0-9]{1,3}(?:\.[0-9]{3})+$/;

/** The form in which `list` and `export` print ids. */
const PLAIN = /^(?:0|-?[1-9][0-9]*)$/;

/** The faults of an id, by pattern. The first match gives the message. */
const FAULTS: [RegExp, string][] = [
  [/^$/, 'is empty; write an integer in digits'],
  [/^\s|\s$/, 'has a blank before or after it; remove the blank'],
  [EXPONENT, 'has an exponent; a spreadsheet may have rounded it; write all digits'],
  [DOTS, 'may have separators; write the digits without them'],
  [/^[-+]?[0-9]+(?:[,'\u2019_\s][0-9]+)+$/, 'has a separator; write the digits without it'],
  [/^[+\u2013\u2212]/, 'has another sign than -; remove it, or write -'],
  [/^-?0[0-9]/, 'has a leading zero; remove it, or give the plant another id if the zero matters'],
  [/^-0$/, 'has a sign, but 0 has none; write 0'],
  [/^["'].*["']$/, 'has quotes; remove them'],
  [/^-?[0-9]+\.[0-9]+$/, 'has a fraction; write an integer'],
  [/^[0-9]+$/, `is above ${ID_MAX}, the largest id`],
  [/^-[0-9]+$/, `is below ${ID_MIN}, the smallest id`],
  [/^/, 'is not a number; write an integer in digits'],
];

/** Reads the id of a CSV row as a JSON number, so `1.0` is 1. @returns the id or its fault */
export function readIdText(text: string): bigint | string {
  const id = EXPONENT.test(text) || DOTS.test(text) ? undefined : int64FromNumberText(text);
  return id ?? `id ${quoted(text)} ${faultOf(text)}`;
}

/**
 * Reads an id that a person typed. It must be plain digits, since `0012` may mean another plant
 * than 12.
 *
 * @returns the id, or its fault such as `has a leading zero; ...`
 */
export function readTypedId(text: string): bigint | string {
  const id = PLAIN.test(text) ? int64FromNumberText(text) : undefined;
  return id ?? faultOf(text);
}

function faultOf(text: string): string {
  return FAULTS.find(([pattern]) => pattern.test(text))![1];
}
