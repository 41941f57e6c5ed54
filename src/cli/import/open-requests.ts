import type { ServiceAddress } from '../service-options.ts';
import { PipelinedRequests } from './pipelined-requests.ts';
import type { PlantRequests } from './plant-requests.ts';
import { PooledRequests } from './pooled-requests.ts';

/**
 * Chooses how plants are sent: TLS is left to a library.
 *
 * @param inFlightMax how many the caller sends at most before an answer has come
 */
export function openPlantRequests(address: ServiceAddress, inFlightMax: number): PlantRequests {
  return address.url.protocol === 'https:'
    ? new PooledRequests(address, inFlightMax)
    : new PipelinedRequests(address, inFlightMax);
}
