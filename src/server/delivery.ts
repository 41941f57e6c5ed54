import type { Socket } from 'node:net';
import type { WrappedResponse } from '../core/extension-points.ts';

/** How a response is sent. */
export type Sending =
  /**
   * `asksToBeLast`: the connection ends after it, unless a further request was read. `onTaken` is
   * called when the client has taken it.
   */
  | { kind: 'whole'; asksToBeLast: boolean; onTaken: (() => void) | undefined }
  /** The connection is closed after this part of it. */
  | { kind: 'cut'; partOf: (headers: string, body: string) => string };

const WHOLE: Sending = { kind: 'whole', asksToBeLast: false, onTaken: undefined };

/** What the server does with the `Delivery` of a response. Only a wrapper of the operation sets one. */
export function sendingOf({ delivery }: WrappedResponse, socket: Socket): Sending {
  if (delivery === undefined) return WHOLE;
  switch (delivery.kind) {
    case 'whole': {
      const { isLast, onTaken } = delivery;
      return { kind: 'whole', asksToBeLast: isLast, onTaken: () => onTaken(!socket.readableEnded) };
    }
    case 'incomplete':
      return { kind: 'cut', partOf: (headers, body) => headers + body.slice(0, body.length / 2) };
    case 'none':
      return { kind: 'cut', partOf: () => '' };
  }
}
