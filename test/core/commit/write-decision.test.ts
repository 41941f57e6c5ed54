import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isIntact } from '../../../src/core/commit/checksum.ts';
import type { RejectedWrite, RepeatedIdRule, WriteResult } from '../../../src/core/commit/plant-commits.ts';
import type { PlantRevision } from '../../../src/core/commit/plant-revision.ts';
import { decide, storedResult } from '../../../src/core/commit/write-decision.ts';
import type { Plant } from '../../../src/core/contract/plant.ts';
import { plantWrite } from '../../harness/plant-write.ts';
import { withChecksum } from '../../harness/stored-revisions.ts';

function stored(plant: Plant, revision: number): PlantRevision {
  return withChecksum({ plant: { id: 7n, ...plant }, revision, recordedAt: 1_000, recordedBy: 1 });
}

function unchanged(revision: number): WriteResult {
  return { kind: 'confirmed', outcome: 'unchanged', revision };
}

function rejected(error: RejectedWrite['error']): WriteResult {
  return { kind: 'rejected', error };
}

const DAMAGED = { ...stored({ name: 'Fern' }, 2), recordedAt: 1_001 };

/** What becomes of a plant with the name Fern and no tag: a revision with this number, or a result. */
const DECISIONS: [
  title: string,
  latest: PlantRevision | undefined,
  rule: RepeatedIdRule,
  expected: number | WriteResult,
][] = [
  ['a new plant', undefined, 'revise', 1],
  ['a new plant, rule reject', undefined, 'reject', 1],
  ['the same content', stored({ name: 'Fern' }, 2), 'revise', unchanged(2)],
  ['the same content, rule reject', stored({ name: 'Fern' }, 2), 'reject', unchanged(2)],
  ['another name', stored({ name: 'Moss' }, 2), 'revise', 3],
  ['another name, rule reject', stored({ name: 'Moss' }, 2), 'reject', rejected('idTaken')],
  ['an empty tag instead of none', stored({ name: 'Fern', tag: '' }, 1), 'revise', 2],
  ['a wrong checksum', DAMAGED, 'revise', rejected('damaged')],
  ['a wrong checksum, rule reject', DAMAGED, 'reject', rejected('damaged')],
  ['no checksum', { ...DAMAGED, checksum: undefined }, 'revise', rejected('damaged')],
];

for (const [title, latest, rule, expected] of DECISIONS) {
  test(`a write decision: ${title}`, () => {
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
