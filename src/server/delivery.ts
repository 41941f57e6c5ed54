import type { Socket } from 'node:net';
import type { WrappedResponse } from '../core/extension-points.ts';

/*
 * What the server does with the `Delivery` of a response. Without a wrapper of the operation, no
 * response has one.
 */

/** Whether the connection ends after a response, unless a further request was read. */
export function asksToBeLast({ delivery }: WrappedResponse): boolean {
  return delivery?.kind === 'whole' && delivery.isLast;
}

/**
 * What is sent of a response whose connection is closed within it, or before it.
 *
 * @returns undefined if the response is sent whole
 */
export function partBeforeCut({ body, delivery }: WrappedResponse, headers: string): string | undefined {
  switch (delivery?.kind) {
    case 'incomplete':
      return headers + body.slice(0, body.length / 2);
    case 'none':
      return '';
    default:
      return undefined;
  }
}

/** What is called when the client has taken a response. If it is undefined, nothing is called. */
export function onDelivered({ delivery }: WrappedResponse, socket: Socket): (() => void) | undefined {
  if (delivery?.kind !== 'whole') return undefined;
  return () => delivery.onTaken(!socket.readableEnded);
}
