const QUOTE = 34;
const COMMA = 44;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/**
 * Finds the borders of the elements of a JSON array in chunks of text. It tracks only strings and
 * nesting (RFC 8259 sections 4, 5 and 7), without recursion. The parser later detects invalid
 * elements.
 */
export class ArrayScanner {
  /** Number of open brackets and braces. */
  #depth = 0;
  #inString = false;
  #isEscaped = false;

  /**
   * @param from start of the search: after the last returned position, or 0 in a new chunk
   * @returns position of the next bracket or comma of the array itself; -1 if the chunk has none
   */
  next(chunk: string, from: number): number {
    for (let position = from; position < chunk.length; position++) {
      const code = chunk.charCodeAt(position);
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === BACKSLASH) this.#isEscaped = true;
        else if (code === QUOTE) this.#inString = false;
      } else if (code === QUOTE) {
        this.#inString = true;
      } else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
        this.#depth++;
        if (this.#depth === 1) return position;
      } else if (this.#depth > 1) {
        if (code === CLOSE_BRACKET || code === CLOSE_BRACE) this.#depth--;
      } else if (code === COMMA) {
        return position;
      } else if (code === CLOSE_BRACKET) {
        this.#depth = 0;
        return position;
      }
    }
    return -1;
  }
}
