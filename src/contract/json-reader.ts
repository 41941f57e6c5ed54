// RFC 8259 sections 2, 3, 6 and 7. Each is matched where it is put.
const SPACE = /[ \t\n\r]*/y;
const SCALAR = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y;
/** Not a whole string: the memory of a match grows with each repetition of an alternative. */
const STRING_PART = /(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,1000}/y;

/** Characters between two pauses. They take less than a millisecond, but for a string that is longer. */
const SLICE_LENGTH = 4096;

/**
 * Finds out whether a text is JSON (RFC 8259), and lists the members of its outermost object.
 *
 * It yields after each slice, so that the caller can do something else, and takes a byte for each level of nesting.
 * JSON.parse cannot pause. It drops repeated members and the digits of numbers, and makes values of all that nobody asks
 * for: up to 1.3 GiB of a text of 8 MiB.
 *
 * @param tellMember gets each member in order, its value as it is written; they mean nothing if the text is not JSON
 * @returns whether the text is JSON
 */
export function* readJson(
  text: string,
  tellMember: (name: string, valueText: string) => void,
): Generator<undefined, boolean, undefined> {
  const nesting = new Nesting();
  let expected: 'value' | 'name' | 'colon' | 'comma' = 'value';
  /** Whether the innermost array or object may end instead. */
  let mayEnd = false;
  let name = '';
  let valueStart = 0;
  let pauseAt = SLICE_LENGTH;
  for (let start = endOfSpace(text, 0), end = 0; start < text.length; start = endOfSpace(text, end)) {
    if (start >= pauseAt) {
      yield;
      pauseAt = start + SLICE_LENGTH;
    }
    const first = text[start]!;
    const isValue = expected === 'value';
    end = start + 1;
    if (first === '{' || first === '[') {
      if (!isValue) return false;
      nesting.open(first === '{');
      expected = nesting.isObject ? 'name' : 'value';
      mayEnd = true;
    } else if (first === ',' || first === nesting.end) {
      const isEnd = first !== ',';
      if (isEnd ? !mayEnd : expected !== 'comma' || nesting.depth === 0) return false;
      if (expected === 'comma' && nesting.isObject && nesting.depth === 1)
        tellMember(name, text.slice(valueStart, start).trim());
      if (isEnd) nesting.close();
      expected = isEnd ? 'comma' : nesting.isObject ? 'name' : 'value';
      mayEnd = isEnd;
    } else if (first === ':') {
      if (expected !== 'colon') return false;
      expected = 'value';
      if (nesting.depth === 1) valueStart = end;
    } else {
      const isName: boolean = expected === 'name' && first === '"';
      if (!isValue && !isName) return false;
      end = first === '"' ? endOfString(text, start) : endOf(SCALAR, text, start);
      if (end === start) return false;
      if (isName && nesting.depth === 1) name = stringOf(text.slice(start, end));
      expected = isName ? 'colon' : 'comma';
      mayEnd = isValue;
    }
  }
  return expected === 'comma' && nesting.depth === 0;
}

/** Reads without a pause. */
export function readToEnd<Reading>(slices: Generator<undefined, Reading, undefined>): Reading {
  let slice = slices.next();
  while (!slice.done) slice = slices.next();
  return slice.value;
}

/** @param valueText a string as JSON writes it */
export function stringOf(valueText: string): string {
  return valueText.includes('\\') ? JSON.parse(valueText) : valueText.slice(1, -1);
}

/** @returns where the match that begins at a position ends; the position itself where there is none */
function endOf(pattern: RegExp, text: string, position: number): number {
  pattern.lastIndex = position;
  return pattern.test(text) ? pattern.lastIndex : position;
}

function endOfSpace(text: string, position: number): number {
  return text.charCodeAt(position) <= 32 ? endOf(SPACE, text, position) : position;
}

/** @param start of its opening quote; returned where no string begins */
function endOfString(text: string, start: number): number {
  let end = start + 1;
  while (text[end] !== '"') {
    const partStart = end;
    end = endOf(STRING_PART, text, partStart);
    if (end === partStart) return start;
  }
  return end + 1;
}

/** The arrays and objects that are open. */
class Nesting {
  depth = 0;
  /** Of the innermost one. */
  isObject = false;
  /** What ends it. */
  end: ']' | '}' | undefined;
  /** A byte each: 8 MiB open eight million. */
  #areObjects = new Uint8Array(32);

  open(isObject: boolean): void {
    if (this.depth === this.#areObjects.length) {
      const larger = new Uint8Array(this.depth * 2);
      larger.set(this.#areObjects);
      this.#areObjects = larger;
    }
    this.#areObjects[this.depth++] = Number(isObject);
    this.isObject = isObject;
    this.end = isObject ? '}' : ']';
  }

  close(): void {
    this.depth--;
    this.isObject = this.#areObjects[this.depth - 1] === 1;
    this.end = this.depth === 0 ? undefined : this.isObject ? '}' : ']';
  }
}
