import { FetchTransport } from './fetch-transport.ts';
import { nodeConnect } from './node-sockets.ts';
import { PipelinedTransport } from './pipelined-transport.ts';
import type { Transport, TransportSettings } from './transport.ts';

/**
 * Chooses how requests are sent: in Node over connections of our own, elsewhere by `fetch`.
 *
 * @param fetchWith is used wherever it is given
 * @throws {TypeError} when it is no function
 */
export function openTransport(settings: TransportSettings, fetchWith: typeof fetch | undefined): Transport {
  if (fetchWith !== undefined && typeof fetchWith !== 'function')
    throw new TypeError('fetch must be a function');
  const connect = fetchWith === undefined ? nodeConnect(settings.url) : undefined;
  if (connect !== undefined) return new PipelinedTransport(settings, connect);
  return new FetchTransport(settings, fetchWith ?? fetch);
}
