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

function unchanged(revision: number): WriteResult {
  return { kind: 'confirmed', outcome: 'unchanged', revision };
}

function rejected(error: 'idTaken' | 'damaged'): WriteResult {
  return { kind: 'rejected', error };
}

/** The result of a write that named another revision than this one. */
function changed(revision: number): WriteResult {
  return { kind: 'rejected', error: 'plantChanged', revision };
}

const MOSS = stored({ name: 'Moss' }, 2);
const FERN = stored({ name: 'Fern' }, 2);

const NONE = { kind: 'none' } as const;
const DAMAGED = { ...stored({ name: 'Fern' }, 2), recordedAt: 1_001 };

/** What becomes of a plant with the name Fern and no tag: a revision with this number, or a result. */
const DECISIONS: [
  title: string,
  latest: PlantRevision | undefined,
  rule: RepeatedIdRule,
  expected: number | WriteResult,
  ifRevision?: number,
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
  ['a new plant, condition 0', undefined, 'revise', 1, 0],
  ['no plant, condition 1', undefined, 'revise', changed(0), 1],
  ['no plant, condition 1, rule reject', undefined, 'reject', changed(0), 1],
  ['another name, condition 0', MOSS, 'revise', changed(2), 0],
  ['another name, condition 1', MOSS, 'revise', changed(2), 1],
  ['another name, condition 2', MOSS, 'revise', 3, 2],
  ['another name, condition 3', MOSS, 'revise', changed(2), 3],
  ['another name, condition 1, rule reject', MOSS, 'reject', changed(2), 1],
  ['another name, condition 2, rule reject', MOSS, 'reject', rejected('idTaken'), 2],
  ['the same content, condition 0', FERN, 'revise', unchanged(2), 0],
  ['the same content, condition 3, rule reject', FERN, 'reject', unchanged(2), 3],
  ['a wrong checksum, condition 0', DAMAGED, 'revise', rejected('damaged'), 0],
];

for (const [title, latest, rule, expected, ifRevision] of DECISIONS) {
  test(`a write decision: ${title}`, () => {
    const write = plantWrite({ id: 7n, name: 'Fern' }, 3, ifRevision);
    const known = latest === undefined ? NONE : { kind: 'stored' as const, stored: latest };
    const decision = decide(write, known, rule, 2_000);
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
