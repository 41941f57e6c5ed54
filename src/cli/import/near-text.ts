/** Whether one text becomes the other by one missing, excess, replaced or swapped character. */
export function isOneEditAway(a: string, b: string): boolean {
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const [restA, restB] = [a.slice(start), b.slice(start)];
  const [shorterA, shorterB] = [restA.slice(1), restB.slice(1)];
  const swapped = `${shorterA[0]}${restA[0]}${shorterA.slice(1)}`;
  return a !== b && (shorterA === shorterB || shorterA === restB || restA === shorterB || swapped === restB);
}
