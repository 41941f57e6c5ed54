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
      const mark = chunk[position];
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (mark === '\\') this.#isEscaped = true;
        else if (mark === '"') this.#inString = false;
      } else if (mark === '"') {
        this.#inString = true;
      } else if (mark === '[' || mark === '{') {
        this.#depth++;
        if (this.#depth === 1) return position;
      } else if (this.#depth > 1) {
        if (mark === ']' || mark === '}') this.#depth--;
      } else if (mark === ',' || mark === ']') {
        return position;
      }
    }
    return -1;
  }
}
