import { randomInt } from 'node:crypto';

/** The server that rules are checked against: all that a check knows of it. */
export interface Target {
  /** The base address, without the `/plants`. */
  baseUrl: URL;
  /** A bearer token that the server accepts. */
  token: string;
  /** An id that no check has used, from 1 to 2^31 - 1: one that every server can hold. */
  nextId(): bigint;
}

/** Ids begin at a random place below 2^30, so that two runs against one server hardly ever meet. */
const FIRST_ID_MAX = 2 ** 30;

export function makeTarget(baseUrl: URL, token: string): Target {
  let lastId = BigInt(randomInt(FIRST_ID_MAX));
  return { baseUrl, token, nextId: () => ++lastId };
}
