import { encodingQuestion } from '../text/encoding-question.ts';

/**
 * A fault in the form of a row. Without it, the text of the row in a rejects file could be read as a
 * plant, so the file has its code in the column `error`.
 */
export interface FormFault {
  code: FormCode;
  message: string;
}

/**
 * - `quotes`: misplaced or unclosed quotes hide the fields. The only field is the text of the row.
 * - `fields 2`: the row has two fields, which are not one for each column.
 * - `encoding`: U+FFFD stands for bytes that are no text in the encoding of the file.
 */
export type FormCode = 'quotes' | 'quotes encoding' | 'encoding' | `fields ${number}`;

const FORM_CODE = /^(?:(?:quotes )?encoding|quotes|fields [0-9]+)$/;
const REPLACEMENT = '\ufffd';

/** Whether the column `error` of a rejects file has the code of a fault in the form. */
export function isFormCode(text: unknown): text is FormCode {
  return typeof text === 'string' && FORM_CODE.test(text);
}

export function hidesFields(code: FormCode): boolean {
  return code.startsWith('quotes');
}

/** The number of fields that the row had; undefined if the code does not say it. */
export function fieldCountOf(code: FormCode): number | undefined {
  if (hidesFields(code)) return 1;
  return code.startsWith('fields ') ? Number(code.slice('fields '.length)) : undefined;
}

/**
 * The fault of a row with invalid bytes.
 *
 * @param escaped the text of the row, as `escapedText` makes it
 * @param encoding of the file; undefined: UTF-8
 */
export function encodingFault(escaped: string, encoding = 'utf-8'): FormFault {
  const what =
    encoding === 'utf-8'
      ? `the row is not UTF-8: it has ${encodingQuestion(escaped)}`
      : `the row is not ${encoding}: it has bytes that ${encoding} does not define`;
  return { code: 'encoding', message: `${what}; write the right text in place of each ${REPLACEMENT}` };
}

/** Whether a row of a rejects file still has the invalid bytes that its code names. */
export function isStillNotUtf8(code: FormCode, texts: readonly (string | undefined)[]): boolean {
  return code.endsWith('encoding') && texts.some(text => text?.includes(REPLACEMENT));
}
