import { Failure } from '../../../src/cli/shared/failure.ts';
import { encodingQuestion } from './encoding-question.ts';
import { LineCounter } from './line-ends.ts';
import { indexOfInvalid } from './utf8-texts.ts';

const BEYOND_ASCII = /\P{ASCII}/u;

/** What a line has: `invalid` bytes, or else characters beyond ASCII, or neither. */
type LineKind = 'invalid' | 'valid' | 'ascii';

/**
 * Decides whether a text with invalid bytes is UTF-8 with damaged rows, or in another encoding.
 *
 * It is UTF-8 if at most as many lines have invalid bytes as have other characters than ASCII in
 * valid UTF-8. A byte order mark counts as one of the latter. In another encoding, text that is
 * valid UTF-8 by chance is very rare, since almost no letters look like a lead byte and its
 * continuation bytes.
 */
export class Utf8Evidence {
  readonly #name: string;
  /** How many lines are of each kind. */
  readonly #counts = { ascii: 1, valid: 0, invalid: 0 };
  /** The kind of the last line. */
  #kind: LineKind = 'ascii';
  readonly #lines = new LineCounter();
  #first: { line: number; question: string } | undefined;

  constructor(name: string, hasMark: boolean) {
    this.#name = name;
    if (hasMark) this.#counts.valid++;
  }

  /** @param text the next part of the file, as `escapedText` makes it */
  add(text: string): void {
    if (this.#first === undefined && !text.isWellFormed()) {
      const line = this.#lines.lineAfter(text.slice(0, indexOfInvalid(text)));
      this.#first = { line, question: encodingQuestion(text) };
    }
    for (const [index, part] of text.split(/[\r\n]+/).entries()) {
      // The first part belongs to the last line.
      if (index === 0) this.#counts[this.#kind]--;
      this.#kind = kindOf(part, index === 0 ? this.#kind : 'ascii');
      this.#counts[this.#kind]++;
    }
    this.#lines.add(text);
  }

  /** @throws {Failure} with the first doubtful text, if the text so far is in another encoding */
  check(): void {
    const { valid, invalid } = this.#counts;
    if (this.#first === undefined || invalid <= valid) return;
    const { line, question } = this.#first;
    throw new Failure(
      `${this.#name} is not UTF-8: line ${line} has ${question}; which text is right? ` +
        'Import the file with the option --encoding and the name of its encoding; ' +
        'with --encoding UTF-8, only the rows that are not UTF-8 are rejected',
    );
  }
}

/** @param before the kind of the line before its next part */
function kindOf(part: string, before: LineKind): LineKind {
  if (before === 'invalid' || !part.isWellFormed()) return 'invalid';
  return BEYOND_ASCII.test(part) ? 'valid' : before;
}
