/** One rule of the operation, with a check whether a server follows it. */
export interface Rule {
  /** Never changes and is never reused: reports and lists of exceptions refer to it. */
  id: string;
  /**
   * The level as in RFC 2119. Rules for every server: the interface requires a MUST, HTTP or JSON
   * requires a SHOULD, and the server may choose at a MAY. Each of our own rules is a MUST.
   */
  level: 'MUST' | 'SHOULD' | 'MAY';
  title: string;
  source: string;
  /** Ids that the check uses in addition to those of its target, such as the ends of int64. */
  fixedIds?: readonly bigint[];
  /**
   * Resolves if the rule holds.
   *
   * @throws {Finding} if the rule does not hold
   * @throws {NotChecked} if the rule cannot be checked
   */
  check(target: Target): Promise<unknown>;
}

export interface Server {
  plantsUrl: URL;
  /** A bearer token that the server accepts. */
  token: string;
  /** Aborts the exchanges in flight. */
  stop: AbortSignal;
}

export interface Target extends Server {
  /** An id that no other check uses. */
  id: bigint;
  /** Two consecutive ids with the same double value; undefined if there are none. */
  neighbours: [bigint, bigint] | undefined;
}

/** A rule does not hold. The message contains the expectation and what was found. */
export class Finding extends Error {
  /** The request as text, with `<ACCESS_TOKEN>` instead of the token. */
  readonly sent: string;
  /** The response as text; undefined if none arrived. */
  readonly received: string | undefined;

  constructor(message: string, sent: string, received?: string, options?: ErrorOptions) {
    super(message, options);
    this.sent = sent;
    this.received = received;
  }
}

/** A rule cannot be checked. The message is the reason, without a full stop. */
export class NotChecked extends Error {}
