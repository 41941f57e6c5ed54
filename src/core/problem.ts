/** What is wrong, and what an operator or user should do about it. */
export interface Problem {
  fault: string;
  advice?: string | undefined;
}

/** The sentence that operators and users see. */
export function problemText({ fault, advice }: Problem): string {
  return advice === undefined ? fault : `${fault}; ${advice}`;
}
