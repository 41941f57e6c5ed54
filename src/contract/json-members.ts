/**
 * Lists the members of a JSON object in order, repeated names included, each value as the text it was written in. JSON.parse
 * drops both the repeats and the digits of a number, and its reviver overflows the stack on nesting that plain
 * JSON.parse takes.
 *
 * @param text a JSON object that JSON.parse has accepted; on any other text the result means nothing
 */
export function jsonMembers(text: string): { name: string; valueText: string }[] {
  const members = [];
  const scanner = new JsonScanner();
  for (let position = scanner.next(text, 0); text[position] !== '}'; ) {
    const colon = scanner.next(text, position + 1);
    // An empty object.
    if (text[colon] === '}') break;
    const end = scanner.next(text, colon + 1);
    const name: string = JSON.parse(text.slice(position + 1, colon));
    members.push({ name, valueText: text.slice(colon + 1, end).trim() });
    position = end;
  }
  return members;
}

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/**
 * Finds where the parts of the outermost object or array begin and end, in text that may come in chunks, cut anywhere.
 * It only follows strings and nesting (RFC 8259 sections 4, 5 and 7), without recursion; a part that is not JSON is found
 * when it is parsed.
 */
export class JsonScanner {
  /** Brackets and braces that are open. */
  #depth = 0;
  /** Closes the outermost value; the other kind alone cannot. */
  #closing = 0;
  #inString = false;
  #isEscaped = false;

  /**
   * @param from where to go on: behind the position that was returned last, or at the start of the next chunk
   * @returns the position of the next bracket, brace, comma or colon that belongs to the outermost value itself; -1 where
   *   the chunk ends before it
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
        if (this.#depth > 1) continue;
        this.#closing = code === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
        return position;
      } else if (this.#depth > 1) {
        if (code === CLOSE_BRACKET || code === CLOSE_BRACE) this.#depth--;
      } else if (code === COMMA || code === COLON) {
        return position;
      } else if (code === this.#closing) {
        this.#depth = 0;
        return position;
      }
    }
    return -1;
  }
}
