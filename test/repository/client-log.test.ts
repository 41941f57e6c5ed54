import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NewPlant, plantJson } from '../../src/contract/plant.ts';
import { withChecksum } from '../../src/store/checksum.ts';
import type { PlantRevision } from '../../src/store/plant-store.ts';
import { faultsOf, type LoggedRequest } from '../harness/client-log.ts';

const ID = 9007199254740993n;

const PLANTS: Record<string, NewPlant> = {
  a: { id: ID, name: 'a' },
  b: { id: ID, name: 'b' },
  'a-with-tag': { id: ID, name: 'a', tag: '' },
  'a-rounded': { id: ID - 1n, name: 'a' },
  other: { id: 1n, name: 'a' },
};

/** Requests with their responses: outcome and revision, a status, or `-` for no response. */
function logOf(requests: string): LoggedRequest[] {
  return requests.split(', ').map(request => {
    const [name = '', result = '', revision] = request.split(' ');
    const plant = PLANTS[name]!;
    const response = {
      status: Number.isNaN(Number(result)) ? 200 : Number(result),
      body: plantJson(plant),
      id: String(plant.id),
      outcome: result,
      revision: Number(revision ?? 0),
      retryAfter: undefined,
    };
    return { plant, sentAt: 0, respondedAt: 1, response: result === '-' ? undefined : response };
  });
}

/** Revisions: the name of a plant and a number. */
function storedOf(revisions: string): PlantRevision[] {
  return revisions
    .split(', ')
    .filter(Boolean)
    .map(each => {
      const [name = '', revision] = each.split(' ');
      const numbers = { revision: Number(revision), recordedAt: 0, recordedBy: 1 };
      return withChecksum({ plant: PLANTS[name]!, ...numbers });
    });
}

for (const [requests, stored, fault = /^$/] of [
  ['a created 1, a unchanged 1, b revised 2, b unchanged 2, a revised 3', 'a 1, b 2, a 3'],
  ['a 401, b 400', ''],
  // Rejected for one client, accepted for another.
  ['a 401, a created 1', 'a 1'],
  ['a 503, b -', ''],
  ['a 503, b -', 'a 1, b 2'],
  ['a 503, a unchanged 1', 'a 1'],
  ['a created 1', '', /^lost: created .*9007199254740993.* missing$/],
  ['a created 1', 'b 1', /^lost: .*"name":"a".*which is .*"name":"b"/],
  ['a created 1', 'a-with-tag 1', /^lost/],
  ['a created 1', 'a-rounded 1', /^lost/],
  ['a created 1, b revised 2, a unchanged 2', 'a 1, b 2', /^lost: unchanged/],
  ['a created 1, b revised 2', 'a 1', /^lost: revised/],
  ['a 400', 'a 1', /^ghost: revision 1/],
  ['other created 1, a created 1, b 401', 'other 1, a 1, b 2', /^ghost: revision 2/],
  ['a created 1', 'a 1, b 2', /^stranger: revision 2/],
  // A request with an unknown outcome may store one revision, not two.
  ['a 503, b revised 2', 'a 1, b 2, a 3', /^stranger: revision 3/],
  ['a created 1, a created 1', 'a 1', /^made twice/],
  ['a created 1, b revised 3', 'a 1, b 3', /^gap/],
  ['a created 1, a revised 2', 'a 1, a 2', /^stored again/],
  ['a created 1, b created 2', 'a 1, b 2', /^wrong outcome/],
] as [requests: string, stored: string, fault?: RegExp][]) {
  test(`requests: ${requests}; stored: ${stored || 'nothing'}`, () => {
    const faults = faultsOf(logOf(requests), storedOf(stored));
    assert.ok(
      (faults.length === 0 ? [''] : faults).some(each => fault.test(each)),
      faults.join('; ') || 'no fault found',
    );
  });
}

test('a fault: the response of another request', () => {
  const [request] = logOf('a created 1');
  const faults = faultsOf([{ ...request!, plant: PLANTS.b! }], storedOf('b 1'));
  assert.match(faults.join('\n'), /^response for another plant/);
});
