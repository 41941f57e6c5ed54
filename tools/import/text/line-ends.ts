/** A text that comes in parts. */
export type Texts = AsyncGenerator<string, void, undefined>;

/** Counts the line ends in a text, as an editor does. The text must not end within a CRLF. */
export function countLineEnds(text: string): number {
  return text.match(/\r\n?|\n/g)?.length ?? 0;
}

/** The number of the current line in a text that comes in parts, which may divide a CRLF. */
export class LineCounter {
  #line: number;
  #endsWithCr = false;

  /** @param line number of the first line */
  constructor(line = 1) {
    this.#line = line;
  }

  get line(): number {
    return this.#line;
  }

  add(text: string): void {
    if (text === '') return;
    this.#line = this.lineAfter(text);
    this.#endsWithCr = text.endsWith('\r');
  }

  /** @returns the number of the line on which the next part of the text would end */
  lineAfter(text: string): number {
    return this.#line + countLineEnds(text) - Number(this.#endsWithCr && text.startsWith('\n'));
  }
}
