/** A rule does not hold: what was expected, what was sent, and what came back. */
export class Finding extends Error {
  /** The request as text; a token in it reads `<ACCESS_TOKEN>`. */
  readonly sent: string;
  /** The answer as text; undefined when none came. */
  readonly received: string | undefined;

  constructor(message: string, sent: string, received?: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Finding';
    this.sent = sent;
    this.received = received;
  }
}
