import { int64FromNumberText } from '../../core/contract/int64.ts';
import { ID_MAX, ID_MIN } from '../../core/contract/limits.ts';
import type { IdReading } from '../../core/contract/plant.ts';
import { quoted } from '../../formats/visible-text.ts';

/** Spreadsheets write long numbers as 9.00719925474099E+15, which has lost digits. */
const EXPONENT = /^[-+]?[0-9][0-9.,]*[eE][-+]?[0-9]+$/;
/** Spreadsheets of many countries write 1000 as 1.000, which would be 1 in JSON. */
const DOTS = /^[-+]?[0-9]{1,3}(?:\.[0-9]{3})+$/;

/** The form in which `list` and `export` print ids. */
const PLAIN = /^(?:0|-?[1-9][0-9]*)$/;

/** The faults of an id, by pattern. The first match gives the fault. */
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

/** Reads the id of a CSV row as a JSON number, so `1.0` is 1. */
export function readCsvId(text: string | undefined): IdReading {
  if (text === undefined) return { kind: 'fault', fault: 'id is required' };
  const isAmbiguous = EXPONENT.test(text) || DOTS.test(text);
  return readingOf(isAmbiguous ? undefined : int64FromNumberText(text), text);
}

/**
 * Reads an id that a person typed. It must be plain digits, since `0012` may mean another plant
 * than 12.
 */
export function readTypedId(text: string): IdReading {
  return readingOf(PLAIN.test(text) ? int64FromNumberText(text) : undefined, text);
}

function readingOf(id: bigint | undefined, text: string): IdReading {
  if (id !== undefined) return { kind: 'id', id };
  const [, fault] = FAULTS.find(([pattern]) => pattern.test(text))!;
  return { kind: 'fault', fault: `id ${quoted(text)} ${fault}` };
}
