/** Of each digest: 32 bits and 31 bits of the id, and 31 more bits that tell texts apart. */
const WORDS = 3;
const SLOTS_MIN = 2 ** 12;
/** With so many slots, the table has 192 MiB. */
const SLOTS_MAX = 2 ** 24;

/**
 * The digests of all texts of a run, to find two texts with one id. It has 12 bytes in each slot, at
 * most three quarters of which are used: 10 million texts take 192 MiB.
 *
 * After 12.5 million texts, no more are added, and later ones are compared with those. That two of
 * 100 million texts have one id is likely once in 2,000 such lists.
 */
export class DigestTable {
  #words = new Uint32Array(SLOTS_MIN * WORDS);
  #count = 0;

  /**
   * Adds a digest of SHA-256, unless it is there.
   *
   * @returns whether another text has the same first 63 bits
   */
  hasOther(digest: Buffer): boolean {
    const high = digest.readUInt32BE(0);
    const low = digest.readUInt32BE(4) >>> 1;
    // An empty slot has 0 here.
    const rest = (digest.readUInt32BE(8) | 1) >>> 0;
    const position = this.#find(high, low);
    const found = this.#words[position + 2]!;
    if (found !== 0) return found !== rest;
    if (this.#hasRoom()) this.#set(this.#find(high, low), high, low, rest);
    return false;
  }

  /** The position of an id, or of the empty slot for it. */
  #find(high: number, low: number): number {
    const words = this.#words;
    let position = (low * WORDS) % words.length;
    while (words[position + 2] !== 0 && (words[position] !== high || words[position + 1] !== low))
      position = (position + WORDS) % words.length;
    return position;
  }

  #set(position: number, high: number, low: number, rest: number): void {
    this.#words[position] = high;
    this.#words[position + 1] = low;
    this.#words[position + 2] = rest;
    this.#count++;
  }

  /** Makes the table larger if it is three quarters full. */
  #hasRoom(): boolean {
    const earlier = this.#words;
    const slots = earlier.length / WORDS;
    if (this.#count < (slots * 3) / 4) return true;
    if (slots === SLOTS_MAX) return false;
    this.#words = new Uint32Array(earlier.length * 2);
    this.#count = 0;
    for (let at = 0; at < earlier.length; at += WORDS) {
      const [high, low, rest] = [earlier[at]!, earlier[at + 1]!, earlier[at + 2]!];
      if (rest !== 0) this.#set(this.#find(high, low), high, low, rest);
    }
    return true;
  }
}
