import { CHUNK_BYTES, joined } from './file-bytes.ts';
import type { Texts } from './line-ends.ts';

/** The start of a text, read as far as needed to learn its form. No text is lost. */
export class TextOpening implements AsyncDisposable {
  text = '';
  /** Whether the text is complete. */
  isAll = false;
  readonly #texts: Texts;

  constructor(texts: Texts) {
    this.#texts = texts;
  }

  /** Reads more until the text suffices, its length is that of a chunk, or the file ends. */
  async extend(isEnough: (text: string) => boolean): Promise<void> {
    while (!this.isAll && this.text.length < CHUNK_BYTES && !isEnough(this.text)) await this.readOn();
  }

  /** Reads the next part of the text. */
  async readOn(): Promise<void> {
    const next = await this.#texts.next();
    if (next.done) this.isAll = true;
    else this.text += next.value;
  }

  /** The text from its start on. */
  whole(): Texts {
    return joined(this.text, this.#texts);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#texts.return();
  }
}
