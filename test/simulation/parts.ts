import type { Part } from './part.ts';
import { tokenCache } from './token-cache.ts';

/** All parts of the service that are simulated. */
export const PARTS: readonly Part[] = [tokenCache];
