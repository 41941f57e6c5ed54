import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERRORS, errorBody } from '../../src/core/contract/errors.ts';
import type { LoggedRequest } from './client-log.ts';
import { type HistoryRequest, historyFaults, type RequestResult, requestFaults } from './linearizable.ts';
import { withChecksum } from './stored-revisions.ts';

// The fault scenarios rely on this check, so it must find each kind of violation, and no others.

/**
 * What happened, the stored names in order, the requests and the faults. A request is the time of
 * its sending and of its response in ms, the name of the plant, and the outcome with the revision, a
 * status, or `lost` without a response. `if 1` is its condition, and `412 2` the revision that it met.
 */
const HISTORIES: [what: string, stored: string, requests: string, faults?: string][] = [
  ['a retry', 'a', '0 1 a created 1, 2 3 a unchanged 1'],
  ['a first plant as revised', 'a', '0 1 a revised 1', 'wrong outcome'],
  ['a second revision as created', 'ab', '0 1 a created 1, 2 3 b created 2', 'wrong outcome'],
  ['no revision', 'a', '0 1 a lost, 2 3 a unchanged 0', 'wrong outcome, lost, stranger'],
  ['a number for two contents', 'a', '0 1 a created 1, 2 3 b unchanged 1', 'two contents, lost'],
  ['a revision of two requests', 'a', '0 2 a created 1, 1 3 a created 1', 'made twice'],

  ['a confirmed plant that is missing', '', '0 1 a created 1', 'lost'],
  ['a confirmed plant that is changed', 'b', '0 1 a created 1, 0 1 b lost', 'lost'],
  ['a revision that repeats the one before', 'aa', '0 1 a created 1, 2 3 a lost', 'stored again'],

  ['overlapping requests, the later one first', 'ba', '0 9 a revised 2, 1 8 b created 1'],
  ['a response at the time of a sending', 'ba', '0 5 a revised 2, 5 8 b created 1'],
  ['a lower revision later', 'ba', '0 4 a revised 2, 5 8 b created 1', 'out of order'],
  ['unchanged, then replaced', 'ab', '0 1 a created 1, 2 9 b revised 2, 4 5 a unchanged 1'],
  ['unchanged, but replaced', 'ab', '0 1 a created 1, 2 3 b revised 2, 4 5 a unchanged 1', 'out of order'],
  ['unchanged before the response to the creator', 'a', '0 9 a created 1, 2 3 a unchanged 1'],
  ['unchanged before the creator was sent', 'a', '0 1 a unchanged 1, 2 3 a created 1', 'out of order'],

  ['an unknown request, seen', 'a', '0 1 a 503, 2 3 a unchanged 1'],
  ['an unknown request, not stored', '', '0 1 a 503'],
  ['an unknown request, late', 'bab', '0 1 b lost, 2 3 b created 1, 4 5 a revised 2, 6 7 b unchanged 3'],
  ['an unknown request, stored twice', 'bab', '0 1 b 500, 4 5 a revised 2', 'stranger'],
  ['an unknown request, seen too early', 'a', '2 3 a unchanged 1, 4 5 a lost', 'stored too early'],
  ['a revision that nobody sent', 'a', '', 'stranger'],
  ['a revision that nobody sent, seen', 'a', '2 3 a unchanged 1', 'stranger'],
  ['a revision of a rejected request', 'a', '0 1 a 401', 'ghost'],
  ['a revision of a rejected or an unknown request', 'a', '0 1 a 401, 2 3 a 500'],

  ['an id that is taken meanwhile', 'a', '0 9 a created 1, 2 3 b 400'],
  ['an id that is taken by an unknown request', 'a', '0 1 a lost, 2 3 b 400'],
  ['an id that is taken by nothing', '', '0 1 a lost, 2 3 b 400', 'wrongly rejected'],
  ['an id that is taken later', 'a', '0 1 b 400, 2 3 a created 1', 'wrongly rejected'],
  ['an id that is taken by its own content', 'a', '0 1 a created 1, 2 3 a 400', 'wrongly rejected'],
  ['an id that was taken', 'ab', '0 1 a created 1, 2 3 b revised 2, 4 5 b 400', 'wrongly rejected'],

  ['one winner for a new id', 'a', '0 9 a created 1 if 0, 1 8 b 412 1 if 0, 2 7 a unchanged 1 if 0'],
  ['two winners for a new id', 'ab', '0 9 a created 1 if 0, 1 8 b revised 2 if 0', 'wrong condition'],
  ['a plant that others have replaced', 'abc', '0 1 a created 1, 0 9 b revised 2, 0 9 c revised 3 if 2'],
  [
    'the wrong revision is replaced',
    'abc',
    '0 1 a created 1, 0 9 b revised 2, 0 9 c revised 3 if 1',
    'wrong condition',
  ],
  ['the content that is there', 'a', '0 1 a created 1, 2 3 a 412 1 if 0', 'wrongly rejected'],
  ['the revision that is there', 'a', '0 1 a created 1, 2 3 b 412 1 if 1', 'wrongly rejected'],
  ['no plant', '', '0 1 a 412 0 if 2'],
  ['no plant, as expected', '', '0 1 a 412 0 if 0', 'wrongly rejected'],
  ['a 412 without a condition', 'a', '0 1 a created 1, 2 3 b 412 1', 'wrongly rejected'],
  ['no plant, after a plant', 'a', '0 1 a created 1, 2 3 b 412 0 if 2', 'out of order'],
  ['no plant, while a plant arrives', 'a', '0 5 a created 1, 2 3 b 412 0 if 2'],
  ['an older revision', 'ab', '0 1 a created 1, 2 3 b revised 2, 4 5 c 412 1 if 0', 'out of order'],
  ['a revision that comes later', 'ab', '0 1 a created 1, 2 3 c 412 2 if 0, 4 5 b revised 2', 'out of order'],
  ['a revision that is lost', 'a', '0 1 a created 1, 2 3 b lost, 4 5 c 412 2 if 0', 'lost'],
  ['a revision of an unknown request', 'ab', '0 1 a created 1, 2 3 b lost, 4 5 c 412 2 if 0'],
  [
    'a revision of a later unknown request',
    'ab',
    '0 1 a created 1, 2 3 c 412 2 if 0, 4 5 b lost',
    'stored too early',
  ],
  ['a rejected plant that is stored', 'ab', '0 1 a created 1, 2 3 b 412 1 if 0', 'ghost'],
  ['an unknown request under its condition', 'ab', '0 1 a created 1, 2 3 b lost if 1'],
  ['an unknown request against its condition', 'ab', '0 1 a created 1, 2 3 b lost if 0', 'stranger'],
  [
    'of two unknown requests, each under its own condition',
    'bab',
    '0 1 b lost, 0 1 b lost if 0, 2 3 a revised 2',
  ],
];

function requestOf(text: string): LoggedRequest {
  const [before, condition] = text.split(' if ');
  const [sentAt, respondedAt, name = '', outcome, revision] = before!.split(' ');
  const ifRevision = condition === undefined ? undefined : Number(condition);
  const sent = {
    plant: { id: 7n, name },
    ifRevision,
    sentAt: Number(sentAt),
    respondedAt: Number(respondedAt),
  };
  if (outcome === 'lost') return { ...sent, response: undefined };
  const status = outcome === '412' || revision === undefined ? Number(outcome) : 200;
  const body = status === ERRORS.idTaken.status ? JSON.stringify(errorBody('idTaken')) : '';
  const headers = { id: '7', revision: Number(revision ?? 0), outcome, retryAfter: undefined };
  return { ...sent, response: { status, body, ...headers } };
}

for (const [what, stored, requests, faults = ''] of HISTORIES) {
  test(`the history check, ${what}: ${faults === '' ? 'no fault' : faults}`, () => {
    const log = requests === '' ? [] : requests.split(', ').map(requestOf);
    const revisions = [...stored].map((name, index) =>
      withChecksum({ plant: { id: 7n, name }, revision: index + 1, recordedAt: 0, recordedBy: 1 }),
    );
    const found = historyFaults(log, revisions);
    assert.equal(found.map(line => line.split(':')[0]).join(', '), faults, found.join('\n'));
  });
}

const CREATED: RequestResult = { kind: 'confirmed', revision: 1, outcome: 'created' };
const REVISED: RequestResult = { kind: 'confirmed', revision: 2, outcome: 'revised' };
const UNCHANGED: RequestResult = { kind: 'confirmed', revision: 1, outcome: 'unchanged' };
const UNKNOWN: RequestResult = { kind: 'unknown', reason: 'no response' };
const TAKEN: RequestResult = { kind: 'idTaken', reason: 'status 400' };

function requestAt(sentAt: number, respondedAt: number, name: string, result: RequestResult): HistoryRequest {
  return { plant: { id: 7n, name }, sentAt, respondedAt, result };
}

/**
 * What a log of HTTP does not have: the sender and the token of each request, and when each revision
 * was stored. The revisions `a` and `b` are stored at 3 and at 6 ms, by the tokens 1 and 2.
 */
const KNOWN_MORE: [what: string, requests: HistoryRequest[], faults?: string][] = [
  [
    'one sender, in order',
    [
      { ...requestAt(0, 9, 'a', CREATED), sender: 1 },
      { ...requestAt(1, 8, 'b', REVISED), sender: 1 },
    ],
  ],
  [
    'one sender, overlapping, the later one first',
    [
      { ...requestAt(0, 9, 'b', REVISED), sender: 1 },
      { ...requestAt(1, 8, 'a', CREATED), sender: 1 },
    ],
    'out of order',
  ],
  [
    'two senders, overlapping, the later one first',
    [
      { ...requestAt(0, 9, 'b', REVISED), sender: 1 },
      { ...requestAt(1, 8, 'a', CREATED), sender: 2 },
    ],
  ],
  [
    'the token of another request',
    [
      { ...requestAt(0, 9, 'a', CREATED), recordedBy: 1 },
      { ...requestAt(0, 9, 'b', REVISED), recordedBy: 1 },
    ],
    'wrong token',
  ],
  [
    'an unknown request of another token',
    [
      { ...requestAt(0, 9, 'a', CREATED), recordedBy: 1 },
      { ...requestAt(0, 9, 'b', UNKNOWN), recordedBy: 1 },
    ],
    'stranger',
  ],
  [
    'two unknown requests, of the later one the token',
    [
      requestAt(0, 9, 'a', CREATED),
      { ...requestAt(0, 9, 'b', UNKNOWN), recordedBy: 1 },
      { ...requestAt(1, 9, 'b', UNKNOWN), recordedBy: 2 },
    ],
  ],
  [
    'confirmed before it is stored',
    [requestAt(0, 2, 'a', CREATED), requestAt(0, 9, 'b', REVISED)],
    'confirmed too early',
  ],
  [
    'stored before it is sent',
    [requestAt(0, 9, 'a', CREATED), requestAt(7, 9, 'b', REVISED)],
    'stored too early',
  ],
  [
    'stored before an unknown request is sent',
    [requestAt(0, 9, 'a', CREATED), requestAt(7, 9, 'b', UNKNOWN)],
    'stored too early',
  ],
  [
    'unchanged, while a revision is stored that no response shows',
    [requestAt(0, 9, 'a', CREATED), requestAt(0, 9, 'b', REVISED), requestAt(7, 8, 'a', UNCHANGED)],
  ],
  [
    'an id that is taken while another content is stored',
    [requestAt(0, 9, 'a', CREATED), requestAt(0, 9, 'b', REVISED), requestAt(4, 5, 'b', TAKEN)],
  ],
  [
    'an id that is taken before another content is stored',
    [requestAt(0, 9, 'a', CREATED), requestAt(0, 9, 'b', REVISED), requestAt(1, 2, 'b', TAKEN)],
    'wrongly rejected',
  ],
];

for (const [what, requests, faults = ''] of KNOWN_MORE) {
  test(`the history check, ${what}: ${faults === '' ? 'no fault' : faults}`, () => {
    const found = requestFaults(requests, [
      { plant: { id: 7n, name: 'a' }, revision: 1, recordedBy: 1, storedAt: 3 },
      { plant: { id: 7n, name: 'b' }, revision: 2, recordedBy: 2, storedAt: 6 },
    ]);
    assert.equal(found.map(line => line.split(':')[0]).join(', '), faults, found.join('\n'));
  });
}
