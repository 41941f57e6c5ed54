import { problemText } from '../core/problem.ts';

/** A text is not the URL of a database. The message repeats no part that may be a password. */
export class InvalidDatabaseUrl extends Error {
  override name = 'InvalidDatabaseUrl';

  constructor(fault: string, advice?: string) {
    super(problemText({ fault, advice }));
  }
}
