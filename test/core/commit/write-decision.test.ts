import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isIntact } from '../../../src/core/commit/checksum.ts';
import type { RepeatedIdRule, WriteResult } from '../../../src/core/commit/plant-commits.ts';
import type { PlantRevision } from '../../../src/core/commit/plant-revision.ts';
import { decide, storedResult } from '../../../src/core/commit/write-decision.ts';
import type { Plant } from '../../../src/core/contract/plant.ts';
import { plantWrite } from '../../harness/plant-write.ts';
import { withChecksum } from '../../harness/stored-revisions.ts';

function stored(plant: Plant, revision: number): PlantRevision {
  return withChecksum({ plant: { id: 7n, ...plant }, revision, recordedAt: 1_000, recordedBy: 1 });
}

const DAMAGED = { ...stored({ name: 'Fern' }, 2), recordedAt: 1_001 };
const UNREADABLE = { ...stored({ name: 'Fern' }, 2), checksum: undefined };

/** What becomes of a plant with the name Fern and no tag: a revision with this number, or a result. */
const DECISIONS: [
  latest: PlantRevision | undefined,
  rule: RepeatedIdRule,
  expected: number | WriteResult,
][] = [
  [undefined, 'revise', 1],
  [undefined, 'reject', 1],
  [stored({ name: 'Fern' }, 2), 'revise', { kind: 'confirmed', outcome: 'unchanged', revision: 2 }],
  [stored({ name: 'Fern' }, 2), 'reject', { kind: 'confirmed', outcome: 'unchanged', revision: 2 }],
  [stored({ name: 'Moss' }, 2), 'revise', 3],
  [stored({ name: 'Moss' }, 2), 'reject', { kind: 'rejected', error: 'idTaken' }],
  [stored({ name: 'Fern', tag: '' }, 1), 'revise', 2],
  [stored({ name: 'Fern', tag: '' }, 1), 'reject', { kind: 'rejected', error: 'idTaken' }],
  [DAMAGED, 'revise', { kind: 'rejected', error: 'damaged' }],
  [DAMAGED, 'reject', { kind: 'rejected', error: 'damaged' }],
  [UNREADABLE, 'revise', { kind: 'rejected', error: 'damaged' }],
];

for (const [latest, rule, expected] of DECISIONS) {
  const { plant, revision } = latest ?? { plant: undefined, revision: 0 };
  test(`revision ${revision} is ${JSON.stringify(plant?.name)}, tag ${plant?.tag}; rule ${rule}`, () => {
    const write = plantWrite({ id: 7n, name: 'Fern' }, 3);
    const decision = decide(write, latest, rule, 2_000);
    if (decision.kind === 'result') {
      assert.deepEqual(decision.result, expected);
      return;
    }
    const next = decision.revision;
    assert.ok(isIntact(next));
    assert.deepEqual([next.plant, next.recordedAt, next.recordedBy], [write.plant, 2_000, 3]);
    assert.equal(next.revision, expected);
    const outcome = expected === 1 ? 'created' : 'revised';
    assert.deepEqual(storedResult(next), { kind: 'confirmed', outcome, revision: expected });
  });
}
