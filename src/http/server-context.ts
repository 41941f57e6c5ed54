import type { CreatePlant } from './create-plant.ts';
import type { CrossOrigin } from './cross-origin.ts';
import type { HttpResponse, ResponseObserver } from './response.ts';

/** Answers the GET of one path. The header fields of the request are given as names and values in turn. */
export type GetHandler = (rawHeaders: readonly string[]) => HttpResponse<string | Uint8Array>;

/** What the listener says of itself, by path. */
export type Documentation = ReadonlyMap<string, GetHandler>;

/** What the listener serves, to whom, and whom it tells. */
export interface PlantService {
  readonly createPlant: CreatePlant;
  /** Which pages of other origins may use the service from a browser; undefined for none. */
  readonly crossOrigin: CrossOrigin | undefined;
  /** The page and the description, to which errors point; undefined where there are none. */
  readonly documentation: Documentation | undefined;
  /** Told of what should not happen; the client is answered 500. */
  readonly failed: (cause: unknown) => void;
  /** Told of each answer as it is written. */
  readonly onResponse: ResponseObserver;
}

/** What every connection of the listener is served with. */
export interface Listener extends PlantService {
  /** Whether the service shuts down: the last response on each connection then closes it. */
  isDraining: boolean;
}
