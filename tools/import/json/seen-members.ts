import { quoted } from '../../../src/formats/visible-text.ts';
import { isLikeTag } from '../rows/confusing-name.ts';
import { type ColumnNames, type RowOptions, readNames, shownColumns } from '../rows/plant-row.ts';

/** Names that are stored; a file can use ids as names. */
const NAMES_MAX = 100;

/**
 * The members that the rows of a file have. JSON has no header, so only the end of the file shows
 * that a member is missing.
 */
export class SeenMembers {
  /** The members that are read. */
  readonly read: ReadonlySet<string>;
  readonly #columns: ColumnNames;
  readonly #seen = new Set<string>();

  constructor(options: RowOptions) {
    this.read = new Set(readNames(options));
    this.#columns = options.form.columns ?? {};
  }

  get isEmpty(): boolean {
    return this.#seen.size === 0;
  }

  add(name: string): void {
    if (this.#seen.size < NAMES_MAX || this.read.has(name)) this.#seen.add(name);
  }

  /** @returns the member that may be a misspelt tag; undefined if a row has a tag, or an option names it */
  likeTag(): string | undefined {
    if (this.#columns.tag !== undefined || this.#seen.has('tag')) return undefined;
    return [...this.#seen].find(name => !this.read.has(name) && isLikeTag(name));
  }

  /** @returns what a person may not expect: members that are ignored, and named ones that no row has */
  notes(): string[] {
    if (this.isEmpty) return [];
    const notes = Object.values(this.#columns)
      .filter(name => name !== '' && !this.#seen.has(name))
      .map(name => `no row has the member ${quoted(name)} of --columns`);
    const ignored = [...this.#seen].filter(name => !this.read.has(name));
    if (ignored.length > 0)
      notes.push(`only ${shownColumns([...this.read])} are read; ignored: ${shownColumns(ignored)}`);
    return notes;
  }
}
