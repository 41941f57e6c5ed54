import { Failure } from '../../output/failure.ts';
import { encodingQuestion } from './encoding-question.ts';
import { LineCounter } from './line-ends.ts';
import { indexOfInvalid } from './utf8-texts.ts';

/** Characters before the end of an unfinished line that are stored for the question. */
const TAIL_LENGTH = 100;
const BEYOND_ASCII = /\P{ASCII}/u;

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
  #validLines: number;
  #invalidLines = 0;
  readonly #lines = new LineCounter();
  /** What the line at the end of the text so far has. */
  #current: { kind: 'ascii' | 'valid' | 'invalid'; tail: string } = { kind: 'ascii', tail: '' };
  #first: { line: number; question: string } | undefined;

  constructor(name: string, hasMark: boolean) {
    this.#name = name;
    this.#validLines = hasMark ? 1 : 0;
  }

  /** @param text the next part of the file, as `escapedText` makes it */
  add(text: string): void {
    if (this.#first === undefined && !text.isWellFormed()) {
      const before = text.slice(0, indexOfInvalid(text));
      const line = this.#lines.lineAfter(before);
      this.#first = { line, question: encodingQuestion(this.#current.tail + text) };
    }
    // An empty line in a divided CRLF counts as neither.
    for (const [index, line] of text.split(/[\r\n]+/).entries()) {
      if (index > 0) this.#endLine();
      this.#addToLine(line);
    }
    this.#lines.add(text);
  }

  /** @throws {Failure} with the first doubtful text, if the text so far is in another encoding */
  check(): void {
    const valid = this.#validLines + (this.#current.kind === 'valid' ? 1 : 0);
    const invalid = this.#invalidLines + (this.#current.kind === 'invalid' ? 1 : 0);
    if (this.#first === undefined || invalid <= valid) return;
    const { line, question } = this.#first;
    throw new Failure(
      `${this.#name} is not UTF-8: line ${line} has ${question}; which text is right? ` +
        'Import the file with the option --encoding and the name of its encoding; ' +
        'with --encoding UTF-8, only the rows that are not UTF-8 are rejected',
    );
  }

  #addToLine(part: string): void {
    const current = this.#current;
    if (!part.isWellFormed()) current.kind = 'invalid';
    else if (current.kind === 'ascii' && BEYOND_ASCII.test(part)) current.kind = 'valid';
    current.tail = (current.tail + part).slice(-TAIL_LENGTH);
  }

  #endLine(): void {
    const { kind } = this.#current;
    if (kind === 'valid') this.#validLines++;
    if (kind === 'invalid') this.#invalidLines++;
    this.#current = { kind: 'ascii', tail: '' };
  }
}
