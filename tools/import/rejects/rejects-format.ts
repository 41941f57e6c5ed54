import { isLikeTag } from '../rows/confusing-name.ts';
import { MEMBERS } from '../rows/plant-row.ts';
import { encodingQuestion } from '../text/encoding-question.ts';

/*
 * A rejects file has the rejected rows of a file in the same format, each with four more columns or
 * members. The column `error` says what is written of the row, and when it is accepted again:
 *
 * | `error` | what is written | when it is accepted |
 * |---|---|---|
 * | a number of the API | all fields or members | when they make a plant that the service stores |
 * | `fields 2` | the two fields, which are not one for each column | when a missing field is filled, or the excess ones are emptied |
 * | `quotes` | the text of the row, as its first field | when a further field is filled |
 * | `encoding` | U+FFFD for each byte that is no text | when no U+FFFD is left |
 * | `quotes encoding` | the text of the row, with U+FFFD | when both are corrected |
 *
 * A row is also read as any other one if a person clears its `error`. Of the codes in words, JSON
 * has only `encoding`. A JSON value that is no object is written as a text, in the member `text`.
 *
 * Columns have the names of a plant, so that the file needs no options. If ids are made of texts, it
 * needs them again. Numbered rows get their number as the id.
 */

/** The columns of the reason. The line and the row are numbers in the file that was imported. */
export const REASON_NAMES = ['line', 'row', 'error', 'message'];

/**
 * A fault in the form of a row. Without it, the text of the row in a rejects file could be read as a
 * plant, so the file has its code in the column `error`.
 */
export interface FormFault {
  code: FormCode;
  message: string;
}

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

/**
 * The name that a column without meaning gets in a rejects file. A reader could confuse the column with
 * one of a plant.
 */
export function ignoredName(name: string): string {
  const key = name.trim().toLowerCase();
  return (MEMBERS as readonly string[]).includes(key) || isLikeTag(key) ? `ignored ${name}` : name;
}

/**
 * The name of a column `id` in a rejects file whose ids are made of texts. Without the options of the
 * import, the column would be read as the id. With them, it is the column `id` again.
 */
export const IGNORED_ID = ignoredName('id');
