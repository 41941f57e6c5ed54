import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type NewPlant, plantJson } from '../src/contract/plant.ts';
import type { PlantRevision } from '../src/store/plant-store.ts';
import { faultsOf, type LoggedRequest } from './harness/client-log.ts';

const ID = 9007199254740993n;

/** A request, and how it was answered: `created 1`, a status, or not at all. */
function sent(plant: NewPlant, told: string | number | undefined): LoggedRequest {
  const [outcome, revision] = typeof told === 'string' ? told.split(' ') : [];
  const status = typeof told === 'number' ? told : 200;
  const answer = {
    status,
    body: plantJson(plant),
    id: String(plant.id),
    outcome,
    revision: Number(revision),
    retryAfter: undefined,
  };
  return { plant, sentAt: 0, answeredAt: 1, answer: told === undefined ? undefined : answer };
}

function stored(...contents: [NewPlant, number][]): PlantRevision[] {
  return contents.map(([plant, revision]) => ({ plant, revision, recordedAt: 0, recordedBy: 1 }));
}

const a = { id: ID, name: 'a' };
const b = { id: ID, name: 'b' };
const other = { id: 1n, name: 'a' };

const HONEST: [string, LoggedRequest[], PlantRevision[]][] = [
  ['nothing was sent', [], []],
  [
    'created, unchanged, revised, unchanged',
    [
      sent(a, 'created 1'),
      sent(a, 'unchanged 1'),
      sent(b, 'revised 2'),
      sent(b, 'unchanged 2'),
      sent(a, 'revised 3'),
    ],
    stored([a, 1], [b, 2], [a, 3]),
  ],
  ['refused and not stored', [sent(a, 401), sent(b, 400)], []],
  ['refused from one client, taken from another', [sent(a, 401), sent(a, 'created 1')], stored([a, 1])],
  ['unknown and not stored', [sent(a, 503), sent(b, undefined)], []],
  ['unknown and stored', [sent(a, 503), sent(b, undefined)], stored([a, 1], [b, 2])],
  ['unknown, then sent again', [sent(a, 503), sent(a, 'unchanged 1')], stored([a, 1])],
];

for (const [what, log, revisions] of HONEST) {
  test(`no fault: ${what}`, () => assert.deepEqual(faultsOf(log, revisions), []));
}

const WRONG: [string, LoggedRequest[], PlantRevision[], RegExp][] = [
  ['created and missing', [sent(a, 'created 1')], [], /^lost: created .*9007199254740993.* missing$/],
  ['unchanged and missing', [sent(a, 'unchanged 1')], [], /^lost/],
  [
    'stored with other content',
    [sent(a, 'created 1')],
    stored([b, 1]),
    /^lost: .*"name":"a".*which is .*"name":"b"/,
  ],
  ['stored with an empty tag for none', [sent(a, 'created 1')], stored([{ ...a, tag: '' }, 1]), /^lost/],
  ['stored under a rounded id', [sent(a, 'created 1')], stored([{ ...a, id: ID - 1n }, 1]), /^lost/],
  [
    'unchanged that names another revision',
    [sent(a, 'created 1'), sent(b, 'revised 2'), sent(a, 'unchanged 2')],
    stored([a, 1], [b, 2]),
    /^lost: unchanged/,
  ],
  ['later revision missing', [sent(a, 'created 1'), sent(b, 'revised 2')], stored([a, 1]), /^lost: revised/],
  ['400 and stored', [sent(a, 400)], stored([a, 1]), /^ghost: revision 1/],
  [
    '401 and stored behind another',
    [sent(other, 'created 1'), sent(a, 'created 1'), sent(b, 401)],
    stored([other, 1], [a, 1], [b, 2]),
    /^ghost: revision 2/,
  ],
  ['stored, though nobody sent it', [sent(a, 'created 1')], stored([a, 1], [b, 2]), /^stranger: revision 2/],
  [
    'one unknown, stored twice',
    [sent(a, 503), sent(b, 'revised 2')],
    stored([a, 1], [b, 2], [a, 3]),
    /^stranger: revision 3/,
  ],
  [
    'two answers for one revision',
    [sent(a, 'created 1'), sent(a, 'created 1')],
    stored([a, 1]),
    /^made twice/,
  ],
  ['a gap', [sent(a, 'created 1'), sent(b, 'revised 3')], stored([a, 1], [b, 3]), /^gap/],
  [
    'the same content again',
    [sent(a, 'created 1'), sent(a, 'revised 2')],
    stored([a, 1], [a, 2]),
    /^stored again/,
  ],
  [
    'created as a later revision',
    [sent(a, 'created 1'), sent(b, 'created 2')],
    stored([a, 1], [b, 2]),
    /^wrong outcome/,
  ],
  ['revised as the first revision', [sent(a, 'revised 1')], stored([a, 1]), /^wrong outcome/],
  [
    'the answer of another request',
    [{ ...sent(a, 'created 1'), plant: { ...a, name: 'c' } }],
    stored([{ ...a, name: 'c' }, 1]),
    /^answer of another plant/,
  ],
];

for (const [what, log, revisions, fault] of WRONG) {
  test(`a fault: ${what}`, () => {
    const faults = faultsOf(log, revisions);
    assert.ok(
      faults.some(each => fault.test(each)),
      `found instead: ${faults.join('; ') || 'nothing'}`,
    );
  });
}
