/** One rule of the operation, and the way to find out whether a server keeps it. */
export interface Rule {
  /** Never changes and is never given to another rule: reports and lists of exceptions hold on to it. */
  id: string;
  /**
   * How binding it is, by RFC 2119. Among the rules for every server MUST is what the interface itself says, SHOULD what
   * HTTP and JSON say where it is silent, and MAY a free choice worth knowing; among our own, MUST is our promise.
   */
  level: 'MUST' | 'SHOULD' | 'MAY';
  title: string;
  source: string;
  /** Ids that the check sends whatever ids it is given: the ends of int64 and the like. */
  fixedIds?: readonly bigint[];
  /**
   * Settles when the rule holds.
   *
   * @throws {Finding} when it does not
   * @throws {NotChecked} when it cannot be told
   */
  check(target: Target): Promise<unknown>;
}

export interface Server {
  plantsUrl: URL;
  /** A bearer token that the server accepts. */
  token: string;
  /** Breaks off the exchanges in flight. */
  stop: AbortSignal;
}

export interface Target extends Server {
  /** An id that no other check uses. */
  id: bigint;
  /** Two ids in a row that are one double; undefined when the ids that may be used hold none. */
  neighbours: [bigint, bigint] | undefined;
}

/** A rule does not hold: what was expected, what was sent, and what came back. */
export class Finding extends Error {
  /** The request as text; a token in it reads `<ACCESS_TOKEN>`. */
  readonly sent: string;
  /** The response as text; undefined when none came. */
  readonly received: string | undefined;

  constructor(message: string, sent: string, received?: string, options?: ErrorOptions) {
    super(message, options);
    this.sent = sent;
    this.received = received;
  }
}

/** Nothing can be said of a rule here; the message is why, without a full stop. */
export class NotChecked extends Error {}
