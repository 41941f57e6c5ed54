import type { NewPlant } from '../../src/core/contract/plant.ts';

/** A plant that was sent, with the response that its client received. */
export interface LoggedRequest {
  /** The content that the store has if it stored this request, also where it must not. */
  plant: NewPlant;
  /** Its field If-Plant-Revision; undefined: none. */
  ifRevision?: number | undefined;
  /** When the first byte was sent and when the response was complete, on the monotonic clock. */
  sentAt: number;
  respondedAt: number;
  /** Undefined if the connection broke before the response. */
  response: LoggedResponse | undefined;
}

export interface LoggedResponse {
  status: number;
  body: string;
  /** The headers Plant-Id, Plant-Revision (0 when absent) and Plant-Outcome. */
  id: string | undefined;
  revision: number;
  outcome: string | undefined;
  retryAfter: string | undefined;
}
