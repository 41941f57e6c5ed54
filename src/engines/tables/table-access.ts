/** The values of one row. A number is a text from PostgreSQL, and a bigint from SQLite. */
export type Row = (string | bigint | null)[];

/** Runs one statement as a transaction of its own. Its parameters are `$1`, `$2` and so on. */
export type Query = (text: string, values: unknown[]) => Promise<Row[]>;

/** How an engine runs statements on the tables that both engines have. */
export interface TableAccess {
  /** Runs a statement that only reads. */
  readRows: Query;
  /**
   * Runs a statement that changes rows. Its change is durable when the promise resolves. After a
   * failure the change may be stored or not.
   */
  writeRows: Query;
}

/** A list of parameters for a statement, such as `$1, $2`. */
export function parameters(values: readonly unknown[], first = 1): string {
  return values.map((_, index) => `$${first + index}`).join(', ');
}

/** Digits as PostgreSQL sends them. In SQLite, digits as a text mean the same number. */
const INTEGER = /^-?[0-9]+$/;

/** Whether a value is an integer, as one of the engines returns it. */
export function isInteger(value: unknown): boolean {
  return typeof value === 'bigint' || (typeof value === 'string' && INTEGER.test(value));
}

/** @returns 0 if the value of a damaged row is no integer */
export function numberOf(value: unknown): number {
  const number = Number(value);
  return Number.isInteger(number) ? number : 0;
}

/** @returns an empty text if the value of a damaged row is no text */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
