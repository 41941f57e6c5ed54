import { hash } from 'node:crypto';
import { idOfDigest, idTextFault, joinedIdTexts } from '../../../src/client/plant-id.ts';
import { ID_MAX } from '../../../src/core/contract/limits.ts';
import { amount } from '../../../src/formats/number-text.ts';
import { quoted } from '../../../src/formats/visible-text.ts';

/** How import makes the ids of a list that has none. */
export type IdRule =
  /** Of the texts of these columns. */
  | { kind: 'texts'; columns: readonly string[]; ignoresIds: boolean }
  /** The rows are numbered in file order. */
  | { kind: 'numbers'; first: bigint; ignoresIds: boolean };

/** The id that is made of the columns of a row. */
export type MadeIdReading =
  /** @property texts of the columns that make the ids */
  { kind: 'id'; id: bigint; texts: readonly string[] } | { kind: 'fault'; fault: string };

/** The id that was made for a row. */
export type MadeId =
  | MadeIdReading
  /** The row has an id of its own, and no option says that it is to be ignored. */
  | { kind: 'own id' };

/** What to do if a list has ids, and options say how to make them. */
export const OWN_IDS = 'use --columns id= to ignore it, or omit --id-from and --number-from';

/**
 * Texts that are compared with later ones; they take 250 MB. That two of 100 million texts have one
 * id is likely once in 2,000 such lists.
 */
const TEXTS_MAX = 4_000_000;

/** What a person may not expect: rows that become one plant. @returns undefined if there is none */
export function repeatedTextsOf({ repeatedCount, columns }: IdMaker): string | undefined {
  if (repeatedCount === 0) return undefined;
  const texts = columns.map(quoted).join(' and ');
  return `${amount(repeatedCount, 'row')} had the same text in ${texts} as an earlier row; rows with the same text are one plant`;
}

/**
 * Says that rows of different plants have one text, so that only the first of them can be stored.
 *
 * @param rows number of rows with the text of an earlier row, and other content
 */
export function ambiguousTextsText(rows: number, columns: readonly string[]): string {
  const texts = columns.map(quoted).join(' and ');
  return `${amount(rows, 'row')} ${rows === 1 ? 'has' : 'have'} the same text in ${texts} as an earlier row, but other content: if these are different plants, the text is not unique; add a column to --id-from`;
}

/** Makes the ids of all rows in one reading of the files. */
export class IdMaker {
  readonly rule: IdRule;
  /** The columns of which the ids are made. */
  readonly columns: readonly string[];
  /** How many rows had the texts of an earlier row. */
  repeatedCount = 0;
  /** Of the ids of earlier texts: bits of the digest that tell two texts with one id apart. */
  readonly #digests = new Map<bigint, number>();
  #next: bigint;

  constructor(rule: IdRule) {
    this.rule = rule;
    this.columns = rule.kind === 'texts' ? rule.columns : [];
    this.#next = rule.kind === 'numbers' ? rule.first : 0n;
  }

  /** The number of the next row; undefined if the ids are made of texts. */
  get nextNumber(): bigint | undefined {
    return this.rule.kind === 'numbers' ? this.#next : undefined;
  }

  /**
   * Makes the id of the next row. A rejected row has a number too, so that it keeps it when it is
   * corrected.
   *
   * @param texts of the columns; an absent one is undefined. Undefined: the row has no columns
   */
  make(texts: readonly (string | undefined)[] | undefined): MadeIdReading {
    if (this.rule.kind === 'numbers') {
      const id = this.#next++;
      if (id <= ID_MAX) return { kind: 'id', id, texts: [] };
      return { kind: 'fault', fault: `its number would be above ${ID_MAX}, the largest id` };
    }
    if (texts === undefined) return { kind: 'fault', fault: 'the row has no columns' };
    const faults = texts.map((text, index) => this.#faultOf(text, index)).filter(each => each !== undefined);
    if (faults.length > 0) return { kind: 'fault', fault: faults.join('; ') };
    return this.#idOf(texts as string[]);
  }

  #faultOf(text: string | undefined, index: number): string | undefined {
    const column = quoted(this.columns[index]!);
    if (text === undefined || text.trim() === '') return `${column} has no text, of which the id is made`;
    const fault = idTextFault(text);
    return fault && `${column} ${fault}; remove it`;
  }

  #idOf(texts: string[]): MadeIdReading {
    const digest = hash('sha256', joinedIdTexts(texts), 'buffer');
    const id = idOfDigest(digest);
    const noted = this.#note(id, digest);
    if (noted === 'same') this.repeatedCount++;
    if (noted !== 'other') return { kind: 'id', id, texts };
    const shown = texts.map(quoted).join(' and ');
    return {
      kind: 'fault',
      fault: `${shown} gives the id ${id}, as another text in an earlier row; change one of the texts`,
    };
  }

  /** Notes the digest of a text, and says what the first text with its id has. */
  #note(id: bigint, digest: Buffer): 'first' | 'same' | 'other' {
    const bits = digest.readUInt32BE(8) >>> 1;
    const earlier = this.#digests.get(id);
    if (earlier !== undefined) return earlier === bits ? 'same' : 'other';
    if (this.#digests.size < TEXTS_MAX) this.#digests.set(id, bits);
    return 'first';
  }
}
