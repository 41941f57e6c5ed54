/** One member of a JSON object: its name, and its value as the text it was written in. */
export interface JsonMember {
  name: string;
  valueText: string;
}

const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/**
 * Lists the members of a JSON object in order, repeated names included, each value as its own text. JSON.parse
 * keeps neither the repeats nor the digits of a number, and its reviver overflows the stack on nesting that plain
 * JSON.parse takes; this walks the text with no recursion.
 *
 * @param text a JSON object that JSON.parse has accepted; on any other text the result means nothing
 */
export function jsonMembers(text: string): JsonMember[] {
  const members: JsonMember[] = [];
  let position = skipSpace(text, text.indexOf('{') + 1);
  while (text.charCodeAt(position) === QUOTE) {
    const nameEnd = endOfString(text, position);
    const name: string = JSON.parse(text.slice(position, nameEnd));
    const colon = skipSpace(text, nameEnd);
    const valueStart = skipSpace(text, colon + 1);
    const valueEnd = endOfValue(text, valueStart);
    members.push({ name, valueText: text.slice(valueStart, valueEnd).trimEnd() });
    position = skipSpace(text, valueEnd);
    if (text.charCodeAt(position) === COMMA) position = skipSpace(text, position + 1);
  }
  return members;
}

/** RFC 8259 section 2: ws = *( %x20 / %x09 / %x0A / %x0D ). */
function skipSpace(text: string, position: number): number {
  for (; ; position++) {
    const code = text.charCodeAt(position);
    if (code !== 32 && code !== 9 && code !== 10 && code !== 13) return position;
  }
}

function endOfString(text: string, start: number): number {
  let position = start + 1;
  for (; text.charCodeAt(position) !== QUOTE; position++) {
    if (text.charCodeAt(position) === BACKSLASH) position++;
  }
  return position + 1;
}

/** The first position behind the value, or behind white space that follows a number or a literal. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  let position = start;
  for (;;) {
    const code = text.charCodeAt(position);
    if (code === QUOTE) {
      position = endOfString(text, position);
      if (depth === 0) return position;
      continue;
    }
    if (depth === 0 && (code === COMMA || code === CLOSE_BRACE)) return position;
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++;
    if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth--;
      if (depth === 0) return position + 1;
    }
    position++;
  }
}
