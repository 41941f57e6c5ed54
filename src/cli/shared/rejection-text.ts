import type { StoreRejected } from '../../core/commit/store-errors.ts';
import { problemText } from '../../core/problem.ts';
import { DATABASE_OPTION } from '../../engines/store-rejections.ts';

/** The message for the user of a command. @param flag of the option with the address of the store */
export function rejectionText({ fault, advice }: StoreRejected, flag: string): string {
  return problemText({ fault, advice: advice?.replace(DATABASE_OPTION, flag) });
}
