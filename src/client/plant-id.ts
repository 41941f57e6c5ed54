/** Separates the texts of an id, so that `ab` and `c` give another id than `a` and `bc`. */
const SEPARATOR = '\u001f';

/** @returns why no id can be made of this text, such as `is blank`; undefined if one can */
export function idTextFault(text: unknown): string | undefined {
  if (typeof text !== 'string') return 'is not a text';
  if (text.trim() === '') return 'is blank';
  if (text.includes(SEPARATOR)) return 'contains U+001F, which separates texts';
  if (!text.isWellFormed()) return 'contains an unpaired surrogate';
  return undefined;
}

/** The text whose SHA-256 in UTF-8 begins with the id. In NFC, all spellings of a text are equal. */
export function joinedIdTexts(texts: readonly string[]): string {
  return texts.map(text => text.normalize('NFC')).join(SEPARATOR);
}

/** @returns the id of a digest, by the rule of {@link plantIdOf} */
export function idOfDigest(digest: Uint8Array): bigint {
  return new DataView(digest.buffer, digest.byteOffset).getBigUint64(0) >> 1n;
}

/**
 * Makes the id of a plant whose key is text, such as an accession number. The same texts always give
 * the same id, also in `import --id-from`.
 *
 * The id is the first 63 bits of the SHA-256 (FIPS 180-4) of the texts in NFC, joined by U+001F, in
 * UTF-8: the first 8 bytes of the digest, big-endian, shifted right by one bit. So it is never
 * negative. Blanks, and capital and small letters count.
 *
 * @throws {TypeError} without a text, or if a text is blank, or contains U+001F or an unpaired
 *   surrogate
 * @throws {Error} in a browser whose page has neither HTTPS nor a loopback address, since such pages
 *   have no SHA-256
 * @example
 * const id = await plantIdOf('1998.0347.A'); // 7597049000137840730n
 * await store.createPlant({ id, name: 'Acer griseum' });
 */
export async function plantIdOf(...texts: string[]): Promise<bigint> {
  if (texts.length === 0) throw new TypeError('give at least one text');
  for (const [index, text] of texts.entries()) {
    const fault = idTextFault(text);
    if (fault !== undefined) throw new TypeError(`text ${index + 1} ${fault}`);
  }
  const { subtle } = crypto;
  if (subtle === undefined) throw new Error('use HTTPS or a loopback address: this page has no SHA-256');
  const bytes = new TextEncoder().encode(joinedIdTexts(texts));
  return idOfDigest(new Uint8Array(await subtle.digest('SHA-256', bytes)));
}
