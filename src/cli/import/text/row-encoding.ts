import { encodingQuestion } from './encoding-question.ts';

const REPLACEMENT = '\ufffd';
const FAULT = /(?:^|; )the row is not UTF-8: /;

/**
 * The fault of a row with invalid bytes. In the rejects file, U+FFFD stands for these bytes.
 *
 * @param escaped the text of the row, as `escapedText` makes it
 */
export function encodingFault(escaped: string): string {
  return `the row is not UTF-8: it has ${encodingQuestion(escaped)}; write the right text in place of each ${REPLACEMENT}`;
}

/** Whether a row of a rejects file still has the fault that its message names. */
export function isStillNotUtf8(message: string, texts: readonly (string | undefined)[]): boolean {
  return FAULT.test(message) && texts.some(text => text?.includes(REPLACEMENT));
}
