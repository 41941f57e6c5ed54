import { CHUNK_BYTES } from './file-bytes.ts';
import { joined } from './utf8-texts.ts';

/** Code units that are read at most to learn the form of a file. */
const LENGTH_MAX = CHUNK_BYTES;

/** The start of a text, read as far as needed to learn its form. No text is lost. */
export class TextOpening implements AsyncDisposable {
  text = '';
  /** Whether the text is complete. */
  isAll = false;
  readonly #texts: AsyncGenerator<string, void, undefined>;

  constructor(texts: AsyncGenerator<string, void, undefined>) {
    this.#texts = texts;
  }

  /** Reads more until the text suffices, its length is the maximum, or the file ends. */
  async extend(isEnough: (text: string) => boolean, lengthMax = LENGTH_MAX): Promise<void> {
    while (!this.isAll && this.text.length < lengthMax && !isEnough(this.text)) await this.readOn();
  }

  /** Reads the next part of the text. */
  async readOn(): Promise<void> {
    const next = await this.#texts.next();
    if (next.done) this.isAll = true;
    else this.text += next.value;
  }

  /** The text from its start on. */
  whole(): AsyncGenerator<string, void, undefined> {
    return joined(this.text, this.#texts);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#texts.return();
  }
}
