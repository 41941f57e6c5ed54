import { randomInt } from 'node:crypto';
import type { LoadOrder } from '../test/harness/load.ts';

const NAME_START = 'Monstera deliciosa ';
/** Digits of an id that ascends; they are in the name too, so that no two names are the same. */
const DIGITS = 16;

/**
 * Makes the plants that create-requests.lua makes for wrk, one after the other, for the other load tools.
 *
 * @returns gives the body of the next request
 */
export function plantMaker({ firstId, ids, nameBytes }: LoadOrder): () => string {
  const fillerBytes = Math.max(nameBytes - DIGITS, 0);
  const filler = NAME_START.padEnd(fillerBytes, 'x').slice(0, fillerBytes);
  let counter = firstId;
  return () => {
    const digits = String(++counter);
    const id = ids === 'random' ? randomId() : digits;
    return `{"id":${id},"name":"${filler}${digits.slice(-Math.min(nameBytes, DIGITS))}","tag":"houseplant"}`;
  };
}

/** From 10^18 to below 922 * 10^16, in two halves: no number holds 19 digits. */
function randomId(): string {
  return `${randomInt(100_000_000, 922_000_000)}${String(randomInt(10_000_000_000)).padStart(10, '0')}`;
}
