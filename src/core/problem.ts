/** What is wrong, and what an operator or user should do about it. */
export interface Problem {
  fault: string;
  advice?: string | AddressAdvice | undefined;
}

/** Advice that names the option with the address of the store. Only a command knows its option. */
export interface AddressAdvice {
  beforeOption: string;
  afterOption?: string;
}

/** For texts that no command shows, such as those of the log. */
const ANY_ADDRESS_OPTION = 'the database option';

/** The sentence that operators and users see. @param addressOption as of {@link adviceText} */
export function problemText({ fault, advice }: Problem, addressOption?: string): string {
  return advice === undefined ? fault : `${fault}; ${adviceText(advice, addressOption)}`;
}

/** @param addressOption the option of the command with the address of the store */
export function adviceText(advice: string | AddressAdvice, addressOption = ANY_ADDRESS_OPTION): string {
  if (typeof advice === 'string') return advice;
  return `${advice.beforeOption}${addressOption}${advice.afterOption ?? ''}`;
}
