const QUOTE = 34;
const COMMA = 44;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/**
 * Finds where the elements of an array begin and end, in text that may come in chunks, cut anywhere. It only follows strings
 * and nesting (RFC 8259 sections 4, 5 and 7), without recursion; an element that is not JSON is found when it is parsed.
 */
export class ArrayScanner {
  /** Brackets and braces that are open. */
  #depth = 0;
  #inString = false;
  #isEscaped = false;

  /**
   * @param from where to go on: behind the position that was returned last, or at the start of the next chunk
   * @returns the position of the next bracket or comma that belongs to the array itself; -1 where the chunk ends before it
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
