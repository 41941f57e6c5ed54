import { plantsUrl } from '../../client/plants-url.ts';
import { NotChecked } from './not-checked.ts';

/** The server that rules are checked against: all that a check knows of it. */
export interface Target {
  /** The address of the operation. */
  plantsUrl: URL;
  /** A bearer token that the server accepts. */
  token: string;
  /** Breaks off the exchanges under way. */
  stop: AbortSignal;
  /** An id that no check has used; each check takes one at most. */
  nextId(): bigint;
  /**
   * Two ids in a row that are one double, for the one rule that needs them.
   *
   * @throws {NotChecked} when the ids that may be used hold none
   */
  neighbours(): [bigint, bigint];
}

/** The ids of one run, under which its rules store plants. */
export interface RunIds {
  /** One for each rule and one to begin with, in a row but for the fixed ones. */
  fresh: bigint[];
  /** Two in a row that are one double; undefined when the range has none. */
  neighbours: [bigint, bigint] | undefined;
}

/** @param baseUrl without the `/plants` */
export function makeTarget(baseUrl: URL, token: string, ids: RunIds, stop: AbortSignal): Target {
  const fresh = ids.fresh.values();
  return {
    ...{ plantsUrl: plantsUrl(baseUrl), token, stop },
    nextId: () => {
      const { value } = fresh.next();
      if (value === undefined) throw new Error('a check has taken more than one id');
      return value;
    },
    neighbours: () => {
      if (ids.neighbours === undefined) {
        throw new NotChecked(
          'the ids that may be used hold no two that are one double, as those beyond 2^53 are',
        );
      }
      return ids.neighbours;
    },
  };
}
