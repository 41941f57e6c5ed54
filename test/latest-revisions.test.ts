import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latestOf } from '../src/store/latest-revisions.ts';
import type { PlantRevision } from '../src/store/plant-store.ts';

function revisionsOf(...kept: [id: bigint, revision: number][]): PlantRevision[] {
  return kept.map(([id, revision]) => ({
    plant: { id, name: `${id} as ${revision}` },
    revision,
    recordedAt: 0,
    recordedBy: 1,
  }));
}

async function* read(
  revisions: PlantRevision[],
  onRead: () => void = () => {},
): AsyncIterable<PlantRevision> {
  for (const revision of revisions) {
    onRead();
    yield revision;
  }
}

const CASES: [string, PlantRevision[], PlantRevision[]][] = [
  ['nothing', [], []],
  ['one revision', revisionsOf([0n, 1]), revisionsOf([0n, 1])],
  ['all of one plant', revisionsOf([-1n, 1], [-1n, 2], [-1n, 3]), revisionsOf([-1n, 3])],
  [
    'one revision of each, at both ends',
    revisionsOf([-(2n ** 63n), 1], [2n ** 63n - 1n, 1]),
    revisionsOf([-(2n ** 63n), 1], [2n ** 63n - 1n, 1]),
  ],
  [
    'neighbours that a double cannot tell apart',
    revisionsOf(
      [2n ** 53n, 1],
      [2n ** 53n, 2],
      [2n ** 53n + 1n, 1],
      [2n ** 53n + 2n, 1],
      [2n ** 53n + 2n, 2],
    ),
    revisionsOf([2n ** 53n, 2], [2n ** 53n + 1n, 1], [2n ** 53n + 2n, 2]),
  ],
];

for (const [what, revisions, latest] of CASES) {
  test(`the latest of ${what}`, async () => {
    assert.deepEqual(await Array.fromAsync(latestOf(read(revisions))), latest);
  });
}

test('no more is read than what tells that a revision is the last, so that memory stays flat', async () => {
  const revisions = revisionsOf(...Array.from({ length: 100 }, (_, id): [bigint, number] => [BigInt(id), 1]));
  let readCount = 0;
  let givenCount = 0;
  for await (const { plant } of latestOf(read(revisions, () => readCount++))) {
    assert.equal(plant.id, BigInt(givenCount++));
    assert.equal(readCount, Math.min(givenCount + 1, revisions.length));
  }
  assert.equal(givenCount, revisions.length);
});
