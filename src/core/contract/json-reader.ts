// RFC 8259 sections 2, 3, 6 and 7. The patterns are sticky: they match at lastIndex.
const SPACE = /[ \t\n\r]*/y;
const SCALAR = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y;
/** Part of a string. The pattern limits the repetitions, because each of them takes memory. */
const STRING_PART = /(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,1000}/y;

/** Characters between two pauses, read in less than 1 ms. There is no pause within a string. */
const SLICE_LENGTH = 4096;

/**
 * Checks whether a text is JSON (RFC 8259), and lists the members of its outermost object.
 *
 * It yields after each slice, so that the event loop can go on. JSON.parse cannot pause. It also
 * drops repeated members, rounds numbers, and may take a hundred times the memory of the text.
 *
 * @param onMember is called for each member in order. Ignore its calls if the text is not JSON
 * @returns the index of the first fault, which is the length of incomplete JSON; undefined if the
 * text is JSON
 */
export function* readJson(
  text: string,
  onMember: (name: string, valueText: string) => void,
): Generator<undefined, number | undefined, undefined> {
  /** Contains 1 for each open object, 0 for each open array. Its size suffices for every depth. */
  const isObject = new Uint8Array(text.length);
  let depth = 0;
  let expected: 'value' | 'name' | 'colon' | 'comma' = 'value';
  /** Whether the innermost array or object may end here. */
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
      if (!isValue) return start;
      isObject[depth++] = first === '{' ? 1 : 0;
      expected = first === '{' ? 'name' : 'value';
      mayEnd = true;
    } else if (first === ',' || (depth > 0 && first === (isObject[depth - 1] ? '}' : ']'))) {
      const isEnd = first !== ',';
      if (isEnd ? !mayEnd : expected !== 'comma' || depth === 0) return start;
      if (expected === 'comma' && isObject[depth - 1] && depth === 1)
        onMember(name, text.slice(valueStart, start).trim());
      if (isEnd) depth--;
      expected = isEnd ? 'comma' : isObject[depth - 1] ? 'name' : 'value';
      mayEnd = isEnd;
    } else if (first === ':') {
      if (expected !== 'colon') return start;
      expected = 'value';
      if (depth === 1) valueStart = end;
    } else {
      const isName: boolean = expected === 'name' && first === '"';
      if (!isValue && !isName) return start;
      if (first === '"') {
        end = endOfCharacters(text, start + 1);
        if (text[end] !== '"') return end;
        end++;
      } else {
        end = endOf(SCALAR, text, start);
        if (end === start) return start;
      }
      if (isName && depth === 1) name = stringOf(text.slice(start, end));
      expected = isName ? 'colon' : 'comma';
      mayEnd = isValue;
    }
  }
  return expected === 'comma' && depth === 0 ? undefined : text.length;
}

/** Runs a generator to its end without pauses. */
export function readToEnd<Reading>(slices: Generator<undefined, Reading, undefined>): Reading {
  let slice = slices.next();
  while (!slice.done) slice = slices.next();
  return slice.value;
}

/** @param valueText a JSON string with its quotes */
export function stringOf(valueText: string): string {
  return valueText.includes('\\') ? JSON.parse(valueText) : valueText.slice(1, -1);
}

/** @returns the end of the match at a position, or the position if there is no match */
function endOf(pattern: RegExp, text: string, position: number): number {
  pattern.lastIndex = position;
  return pattern.test(text) ? pattern.lastIndex : position;
}

function endOfSpace(text: string, position: number): number {
  return text.charCodeAt(position) <= 32 ? endOf(SPACE, text, position) : position;
}

/** @returns the end of the characters of a string, where its closing quote must be */
function endOfCharacters(text: string, start: number): number {
  let end = start;
  for (let partStart = -1; text[end] !== '"' && end > partStart; ) {
    partStart = end;
    end = endOf(STRING_PART, text, partStart);
  }
  return end;
}
