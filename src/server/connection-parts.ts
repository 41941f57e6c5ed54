import type { Clock } from '../core/clock.ts';
import type { CreateResult } from '../core/create-plant.ts';
import type { HttpResponse } from '../core/response.ts';
import type { TickBudget } from '../core/tick-budget.ts';
import type { Exchange } from './exchange.ts';
import type { LongBodyMemory } from './long-bodies.ts';
import type { HeadersCache } from './parsed-headers.ts';
import type { PlainCreates } from './plain-creates.ts';
import type { ServerContext } from './server-context.ts';

/** The result of a handler: that of a create, or the response to another request. */
export type Handled = CreateResult | { kind: 'ready'; response: HttpResponse };

/** The parts that all connections of a server share. */
export interface ConnectionParts {
  readonly clock: Clock;
  readonly context: ServerContext;
  readonly headersCache: HeadersCache;
  readonly longBodies: LongBodyMemory;
  readonly creates: PlainCreates;
  /** Handles a request that is no plain create with a known token. */
  readonly handle: (exchange: Exchange) => Promise<Handled>;
  /** Time per tick for the requests that `handle` handles, and for their bodies. */
  readonly exchangeBudget: TickBudget;
}
