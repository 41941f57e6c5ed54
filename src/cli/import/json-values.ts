import { Failure } from '../failure.ts';
import { ROW_LENGTH_MAX } from './limits.ts';
import { HARMLESS } from './plant-row.ts';

/** One value of a JSON file as the text it was written in; not looked into, so it may be no JSON at all. */
export interface JsonValueText {
  /** Counted from 1: the line, or the element of the array. */
  number: number;
  text: string;
}

/** Cuts a file of JSON values into the texts of the values, piece by piece of the file. */
export interface JsonSplitter {
  /** Takes the next piece, cut anywhere, and hands out the values that end in it. */
  feed(piece: string): Generator<JsonValueText, void, undefined>;
  /** Takes note that the file ends, and hands out what ended with it. */
  end(): Iterable<JsonValueText>;
}

/** JSON Lines: a value on every line; empty lines are skipped but counted. */
export class JsonLinesSplitter implements JsonSplitter {
  readonly #fileName: string;
  #line = '';
  #number = 0;

  constructor(fileName: string) {
    this.#fileName = fileName;
  }

  *feed(piece: string): Generator<JsonValueText, void, undefined> {
    let start = 0;
    for (;;) {
      const end = piece.indexOf('\n', start);
      if (end < 0) break;
      yield* this.#take(piece.slice(start, end));
      start = end + 1;
    }
    this.#line += piece.slice(start);
    limitLength(this.#fileName, 'line', this.#number + 1, this.#line);
  }

  end(): Iterable<JsonValueText> {
    return this.#take('');
  }

  *#take(end: string): Generator<JsonValueText, void, undefined> {
    const text = trimJsonSpace(this.#line + end);
    this.#line = '';
    this.#number++;
    limitLength(this.#fileName, 'line', this.#number, text);
    if (text !== '') yield { number: this.#number, text };
  }
}

const QUOTE = 34;
const COMMA = 44;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/**
 * The elements of one JSON array. It only follows strings and nesting, which is enough to find the commas between
 * elements (RFC 8259 section 5) and needs no recursion; an element that is not JSON is found when it is read.
 */
export class JsonArraySplitter implements JsonSplitter {
  readonly #fileName: string;
  #element = '';
  #number = 0;
  /** Brackets and braces that are open; the array's own is the first. */
  #depth = 0;
  #inString = false;
  #escaped = false;
  #closed = false;

  /** @param fileName how messages call the file, whose first character but white space is `[` */
  constructor(fileName: string) {
    this.#fileName = fileName;
  }

  *feed(piece: string): Generator<JsonValueText, void, undefined> {
    let start = 0;
    for (let position = 0; position < piece.length; position++) {
      const code = piece.charCodeAt(position);
      if (this.#escaped) this.#escaped = false;
      else if (this.#inString) {
        if (code === QUOTE) this.#inString = false;
        else if (code === BACKSLASH) this.#escaped = true;
      } else if (this.#closed) this.#refuseBehindEnd(code);
      else if (code === QUOTE) this.#inString = true;
      else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
        if (this.#depth === 0) start = position + 1;
        this.#depth++;
      } else if (code === COMMA && this.#depth === 1) {
        yield this.#take(piece.slice(start, position));
        start = position + 1;
      } else if (code === CLOSE_BRACKET && this.#depth === 1) {
        this.#closed = true;
        const last = this.#take(piece.slice(start, position));
        if (last.number > 1 || last.text !== '') yield last;
        // A brace alone cannot close the array; it belongs to an element that is not JSON.
      } else if ((code === CLOSE_BRACKET || code === CLOSE_BRACE) && this.#depth > 1) this.#depth--;
    }
    if (this.#depth === 0 || this.#closed) return;
    this.#element += piece.slice(start);
    limitLength(this.#fileName, 'element', this.#number + 1, this.#element);
  }

  end(): Iterable<JsonValueText> {
    if (this.#closed) return [];
    throw new Failure(
      `${this.#fileName} ends before the JSON array does, in element ${this.#number + 1} or behind it; ${HARMLESS}`,
    );
  }

  #take(end: string): JsonValueText {
    const text = trimJsonSpace(this.#element + end);
    this.#element = '';
    this.#number++;
    limitLength(this.#fileName, 'element', this.#number, text);
    return { number: this.#number, text };
  }

  #refuseBehindEnd(code: number): void {
    if (isJsonSpace(code)) return;
    throw new Failure(
      `${this.#fileName} goes on after the JSON array, behind element ${this.#number}; ${HARMLESS}`,
    );
  }
}

function limitLength(fileName: string, kind: string, number: number, text: string): void {
  if (text.length <= ROW_LENGTH_MAX) return;
  throw new Failure(
    `${fileName}: ${kind} ${number} is longer than ${ROW_LENGTH_MAX / 1024 / 1024} MiB; ` +
      `is a quote or bracket in it never closed? ${HARMLESS}`,
  );
}

/** RFC 8259 section 2: ws = *( %x20 / %x09 / %x0A / %x0D ). String.trim would cut more, which is a fault to report. */
function isJsonSpace(code: number): boolean {
  return code === 32 || code === 9 || code === 10 || code === 13;
}

function trimJsonSpace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isJsonSpace(text.charCodeAt(start))) start++;
  while (end > start && isJsonSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}
