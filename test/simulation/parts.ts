import { connection } from './connection.ts';
import { groupCommit } from './group-commit.ts';
import type { Part } from './part.ts';
import { postgres } from './postgres.ts';
import { providerKeys } from './provider-keys.ts';
import { sqliteThread } from './sqlite-thread.ts';
import { tokenCache } from './token-cache.ts';

/** All parts of the service that are simulated. */
export const PARTS: readonly Part[] = [
  connection,
  groupCommit,
  sqliteThread,
  postgres,
  tokenCache,
  providerKeys,
];
