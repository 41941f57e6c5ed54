import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BODY_LIMIT_MAX } from '../src/cli/options/serve-options.ts';
import { EXIT_MS } from '../src/cli/serve.ts';
import { CONCURRENCY_MAX, IN_FLIGHT_TEXT_LENGTH_MAX } from '../src/client/bulk-create.ts';
import { RETRY_AFTER_MAX_MS, TIMER_MAX_MS } from '../src/client/retrying-request.ts';
import * as batches from '../src/core/commit/batch-size.ts';
import { FAILING_QUEUE_TIMEOUT_MS } from '../src/core/commit/group-commit.ts';
import * as contract from '../src/core/contract/limits.ts';
import * as tokens from '../src/core/tokens/token-cache.ts';
import { OPERATION_TIMEOUT_MS, STATEMENT_TIMEOUT_MS } from '../src/engines/postgres/connection.ts';
import * as sqlite from '../src/engines/sqlite/wal-limits.ts';
import { LONG_BODIES_MAX_BYTES } from '../src/server/long-bodies.ts';
import { TIMEOUT_POLL_INTERVAL_MS } from '../src/server/plant-server.ts';
import { HEADERS_TIMEOUT_MS, SHUTDOWN_MS } from '../src/server/timeouts.ts';
import { IN_FLIGHT_MAX } from '../tools/import/import.ts';
import { CHUNK_BYTES } from '../tools/import/text/file-bytes.ts';

const REFRESH_MAX_MS = tokens.TOKEN_REFRESH_INTERVAL_MS + tokens.TOKEN_REFRESH_INTERVAL_MIN_MS;
const SLOW_REQUEST_MAX_MS = contract.REQUEST_TIMEOUT_MS + TIMEOUT_POLL_INTERVAL_MS;

/** Each value must be at most its maximum. */
const RULES: [rule: string, value: number, max: number][] = [
  ['a revocation takes effect within 5 s', tokens.TOKEN_AGE_MAX_MS, 4_999],
  ['tokens stay current if one refresh fails', REFRESH_MAX_MS * 2, tokens.TOKEN_AGE_MAX_MS - 1],
  ['a lookup starts a refresh', tokens.TOKEN_REFRESH_INTERVAL_MIN_MS, tokens.TOKEN_LOOKUP_TIMEOUT_MS - 1],
  ['headers are part of the request', HEADERS_TIMEOUT_MS, contract.REQUEST_TIMEOUT_MS - 1],
  ['a slow request is rejected within 15 s', SLOW_REQUEST_MAX_MS, 15_000],
  ['two of the longest bodies fit', BODY_LIMIT_MAX * 2, LONG_BODIES_MAX_BYTES],
  ['the largest plant fits a batch', BODY_LIMIT_MAX, batches.BATCH_TEXT_LENGTH_MAX],
  ['the store is closed after the last response', SHUTDOWN_MS, EXIT_MS - 1],
  ['the process ends within 10 s of SIGTERM', EXIT_MS, 9_999],
  ['the client accepts the largest --in-flight', IN_FLIGHT_MAX, CONCURRENCY_MAX],
  ['the client accepts one chunk of a file', CHUNK_BYTES, IN_FLIGHT_TEXT_LENGTH_MAX],
  ['a timer supports Retry-After with jitter', RETRY_AFTER_MAX_MS * 1.25, TIMER_MAX_MS],
  ['a timeout leaves time for a lookup', STATEMENT_TIMEOUT_MS, OPERATION_TIMEOUT_MS - 1],
  ['responses in an outage take 5 s', FAILING_QUEUE_TIMEOUT_MS + OPERATION_TIMEOUT_MS, 4_999],
  [
    'the writer copies the rest',
    sqlite.CHECKPOINT_REMAINING_PAGES_MAX,
    sqlite.WRITER_CHECKPOINT_PAGES_MAX - 1,
  ],
  ['the rest of a log is short', sqlite.WRITER_CHECKPOINT_PAGES_MAX, sqlite.WAL_RESTART_PAGES - 1],
  ['a restart comes before blocked commits', sqlite.WAL_RESTART_PAGES, sqlite.AUTOCHECKPOINT_PAGES - 1],
];

test('the limits fit each other', () => {
  const broken = RULES.filter(([, value, max]) => !(value <= max)).map(([rule]) => rule);
  assert.deepEqual(broken, []);
});
