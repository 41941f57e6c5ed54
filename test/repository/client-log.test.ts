import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NewPlant, plantJson } from '../../src/contract/plant.ts';
import { faultsOf, type LoggedRequest } from '../harness/client-log.ts';
import { withChecksum } from '../harness/stored-revisions.ts';

// All fault scenarios rely on this comparison. If it missed a fault, they would pass.

const ID = 9007199254740993n;
const PLANTS: Record<string, NewPlant> = {
  a: { id: ID, name: 'a' },
  b: { id: ID, name: 'b' },
  tagged: { id: ID, name: 'a', tag: '' },
  rounded: { id: ID - 1n, name: 'a' },
};

/** A request such as `a created 1`: a plant, an outcome or status (`-` for no response), a revision. */
function logged(request: string): LoggedRequest {
  const [name = '', outcome = '', revision] = request.split(' ');
  const plant = PLANTS[name]!;
  const headers = { id: String(plant.id), outcome, revision: Number(revision ?? 0), retryAfter: undefined };
  const response = { status: Number(outcome) || 200, body: plantJson(plant), ...headers };
  return { plant, sentAt: 0, respondedAt: 1, response: outcome === '-' ? undefined : response };
}

function stored(row: string) {
  const [name = '', revision] = row.split(' ');
  return withChecksum({ plant: PLANTS[name]!, revision: Number(revision), recordedAt: 0, recordedBy: 1 });
}

const CASES: [requests: string, rows: string, fault?: RegExp][] = [
  ['a created 1, a unchanged 1, b revised 2, a revised 3', 'a 1, b 2, a 3'],
  ['a 401, a created 1', 'a 1'],
  ['a 503, b -, a 401', 'a 1, b 2'],
  ['a created 1', '', /lost: created .*9007199254740993.* missing$/],
  ['a created 1', 'tagged 1', /lost: .*"name":"a".* which is .*"tag":""/],
  ['a created 1', 'rounded 1', /lost/],
  ['a created 1, b revised 2, a unchanged 2', 'a 1, b 2', /lost: unchanged/],
  ['a 400', 'a 1', /ghost: revision 1/],
  ['a created 1', 'a 1, b 2', /stranger: revision 2/],
  // A request with an unknown outcome stores at most one revision.
  ['a 503, b revised 2', 'a 1, b 2, a 3', /stranger: revision 3/],
  ['a created 1, a created 1', 'a 1', /made twice/],
  ['a created 1, b revised 3', 'a 1, b 3', /gap/],
  ['a created 1, a revised 2', 'a 1, a 2', /stored again/],
  ['a created 1, b created 2', 'a 1, b 2', /wrong outcome/],
];

test('each fault is found, and none where there is none', () => {
  for (const [requests, rows, fault = /^$/] of CASES) {
    const revisions = rows.split(', ').filter(Boolean).map(stored);
    const faults = faultsOf(requests.split(', ').map(logged), revisions);
    assert.match(faults.join('; '), fault, `requests: ${requests}; stored: ${rows}`);
  }
  const request = { ...logged('a created 1'), plant: PLANTS.b! };
  assert.match(faultsOf([request], [stored('b 1')]).join(), /^response for another plant/);
});
