/** What is wrong, and what an operator or user should do about it. */
export interface Problem {
  fault: string;
  advice?: Advice | undefined;
}

/**
 * Advice that names the option with the address of the store is a function, since the option differs
 * by command.
 */
export type Advice = string | ((addressOption: string) => string);

const ADDRESS_OPTION = '--database';

/** @returns undefined if there is no advice */
export function adviceOf({ advice }: Problem, addressOption = ADDRESS_OPTION): string | undefined {
  return typeof advice === 'function' ? advice(addressOption) : advice;
}

/** The sentence that operators and users see. */
export function problemText(problem: Problem, addressOption = ADDRESS_OPTION): string {
  const advice = adviceOf(problem, addressOption);
  return advice === undefined ? problem.fault : `${problem.fault}; ${advice}`;
}
