import type { Transport } from '../../client/transport.ts';

/** A time of the service's clock before the first row was sent. */
export type TimeBefore =
  /** Milliseconds since 1970 UTC. */
  { kind: 'known'; ms: number } | { kind: 'unknown' };

/** A response that confirms a replaced plant. */
export interface Replacement {
  id: string;
  revision: string;
}

/**
 * Sees the responses of an import. It finds a time before the first row, by the clock of the service,
 * which gives revisions their times. It counts replaced plants also if the client rejects the
 * response, because the service should not have replaced them.
 */
export class ResponseWatch {
  readonly send: Transport;
  timeBefore: TimeBefore = { kind: 'unknown' };
  /** How many responses confirm a replaced plant, and the first of them. */
  replaced = 0;
  firstReplacement: Replacement | undefined;
  /** When the first request was sent; ms, monotonic clock. */
  #sentMs: number | undefined;

  constructor(transport: Transport) {
    this.send = (request, signal) => {
      this.#sentMs ??= performance.now();
      const response = transport(request, signal);
      response.then(
        ({ headers }) => this.#onResponse(headers),
        // The client handles the error.
        () => {},
      );
      return response;
    };
  }

  #onResponse(headers: Readonly<Record<string, string | undefined>>): void {
    const outcome = headers['plant-outcome'];
    if (outcome === 'revised') {
      this.replaced++;
      this.firstReplacement ??= { id: `${headers['plant-id']}`, revision: `${headers['plant-revision']}` };
    }
    if (outcome !== undefined && this.timeBefore.kind === 'unknown')
      this.timeBefore = this.#timeBefore(headers.date);
  }

  /**
   * The field Date has whole seconds (RFC 9110 section 5.6.7), and the response is younger than the
   * request by the time that passed here. One millisecond is for a row that is stored in the very
   * first millisecond of that second.
   */
  #timeBefore(date: string | undefined): TimeBefore {
    const ms = Date.parse(date ?? '');
    if (Number.isNaN(ms)) return { kind: 'unknown' };
    return { kind: 'known', ms: ms - Math.ceil(performance.now() - this.#sentMs!) - 1 };
  }
}
