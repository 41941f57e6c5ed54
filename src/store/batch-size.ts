/** Limits a batch by the number of its items and by the length of their text. One item always fits. */
export class BatchSize {
  readonly #countMax: number;
  readonly #textLengthMax: number;
  #count = 0;
  #textLength = 0;

  constructor(countMax: number, textLengthMax: number) {
    this.#countMax = countMax;
    this.#textLengthMax = textLengthMax;
  }

  /** Adds an item if it fits. @returns whether it fits */
  add(textLength: number): boolean {
    const isFull = this.#count === this.#countMax || this.#textLength + textLength > this.#textLengthMax;
    if (isFull && this.#count > 0) return false;
    this.#count++;
    this.#textLength += textLength;
    return true;
  }
}

/** @returns how many of the first items fit into a batch */
export function countThatFits(textLengths: readonly number[], textLengthMax: number): number {
  const size = new BatchSize(Infinity, textLengthMax);
  const beyond = textLengths.findIndex(textLength => !size.add(textLength));
  return beyond === -1 ? textLengths.length : beyond;
}

/** The length of the text of a plant, in UTF-16 code units. */
export function textLengthOf({ name, tag = '' }: { name: string; tag?: string }): number {
  return name.length + tag.length;
}
