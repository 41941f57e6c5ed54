import type { CreateResult } from '../core/create-plant.ts';
import type { BodyReading, OpenRequest, ReceivedRequest, RequestHeaders } from '../core/request.ts';
import type { HttpResponse } from '../core/response.ts';
import { BodyDecoder, type Decoded } from './body-decoder.ts';
import { BodyShare, type LongBodyMemory, ReceivedBody } from './long-bodies.ts';

/** The result of a handler: that of a create, or the response to another request. */
export type HandlerResult = CreateResult | { kind: 'ready'; response: HttpResponse };

type State =
  /** The handler has not asked for the body. Its bytes are discarded. */
  | { kind: 'unread' }
  | { kind: 'reading'; body: ReceivedBody; settle: (reading: BodyReading) => void }
  /** The body was read, or rejected. */
  | { kind: 'read' }
  /** The body was invalid or late, or the connection is closed. */
  | { kind: 'over' };

/**
 * One request whose handler decides when to read the body. The connection holds the bytes of the
 * body back until then.
 */
export class HandledRequest implements OpenRequest {
  readonly request: ReceivedRequest;
  /**
   * The share of this body in the memory for long bodies, until the client has taken the response.
   */
  readonly share: BodyShare;
  readonly #decoder: BodyDecoder;
  readonly #onBodyWanted: () => void;
  #state: State = { kind: 'unread' };

  /** @param onBodyWanted called when the handler asks for a body that has not arrived whole */
  constructor(request: ReceivedRequest, longBodies: LongBodyMemory, onBodyWanted: () => void) {
    this.request = request;
    this.share = new BodyShare(longBodies);
    this.#decoder = new BodyDecoder(request.headers.framing);
    this.#onBodyWanted = onBodyWanted;
  }

  get headers(): RequestHeaders {
    return this.request.headers;
  }

  /** Whether the whole request was decoded. */
  get isComplete(): boolean {
    return this.#decoder.isComplete;
  }

  /** Whether the client still waits for the response. */
  get isAwaited(): boolean {
    return this.#state.kind !== 'over';
  }

  /** Reads the body, once. It reserves memory before the first byte arrives. */
  readBody(bytesMax: number): Promise<BodyReading> {
    const { framing } = this.headers;
    if (!this.isAwaited) return Promise.resolve({ kind: 'abandoned' });
    const body = new ReceivedBody(this.share, bytesMax);
    if (framing.kind === 'length' && !body.announce(framing.bytes))
      return Promise.resolve({ kind: 'noRoom' });
    return new Promise(settle => {
      this.#state = { kind: 'reading', body, settle };
      if (this.isComplete) this.#settle({ kind: 'whole', bytes: body.bytes }, { kind: 'read' });
      else this.#onBodyWanted();
    });
  }

  decode(bytes: Buffer): Decoded {
    const decoded = this.#decoder.decode(bytes, this.#take);
    if (this.#state.kind === 'reading' && decoded.kind === 'complete')
      this.#settle({ kind: 'whole', bytes: this.#state.body.bytes }, { kind: 'read' });
    return decoded;
  }

  /** Tells the handler that nobody waits for the response any more. */
  end(): void {
    this.#settle({ kind: 'abandoned' }, { kind: 'over' });
  }

  readonly #take = (part: Buffer): void => {
    if (this.#state.kind !== 'reading') return;
    const fault = this.#state.body.add(part);
    if (fault === undefined) return;
    // The memory is free at once, since other bodies may grow before the handler continues.
    this.share[Symbol.dispose]();
    this.#settle({ kind: fault }, { kind: 'read' });
  };

  #settle(reading: BodyReading, next: State): void {
    const state = this.#state;
    this.#state = next;
    if (state.kind === 'reading') state.settle(reading);
  }
}
