import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingRevisions } from '../src/store/copy/missing-revisions.ts';
import { type PlantRevision, StoreRefused } from '../src/store/plant-store.ts';
import { SEED, seededRandom } from './harness/seeded-random.ts';

function revision(id: bigint, number = 1, name = `plant ${id}`, tag?: string): PlantRevision {
  const plant = tag === undefined ? { id, name } : { id, name, tag };
  return { plant, revision: number, recordedAt: 1_767_225_600_000, recordedBy: 1 };
}

async function* read(revisions: PlantRevision[]): AsyncIterable<PlantRevision> {
  yield* revisions;
}

function missing(source: PlantRevision[], target: PlantRevision[]): Promise<PlantRevision[]> {
  return Array.fromAsync(missingRevisions(read(source), read(target)));
}

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const SOURCE = [
  revision(INT64_MIN),
  revision(-1n),
  revision(-1n, 2, 'again'),
  revision(-1n, 10, 'at last', ''),
  revision(2n ** 53n),
  revision(2n ** 53n + 1n, 1, 'neighbour', 'tagged'),
  revision(INT64_MAX),
];

test('any part of the source lacks the rest of it, in its order', async () => {
  for (let kept = 0; kept < 2 ** SOURCE.length; kept++) {
    const target = SOURCE.filter((_, index) => kept & (1 << index));
    const rest = SOURCE.filter((_, index) => !(kept & (1 << index)));
    assert.deepEqual(await missing(SOURCE, structuredClone(target)), rest);
  }
});

test('random stores: what is missing makes the target whole', async () => {
  const random = seededRandom(SEED);
  const source = Array.from({ length: 2_000 }, (_, index) => revision(BigInt(index >> 1), (index & 1) + 1));
  const target = source.filter(() => random(3) > 0);
  const added = await missing(source, target);
  const whole = [...target, ...added].sort((a, b) =>
    a.plant.id === b.plant.id ? a.revision - b.revision : Number(a.plant.id - b.plant.id),
  );
  assert.deepEqual(whole, source, `seed ${SEED}`);
});

const REFUSED: [what: string, target: PlantRevision, says: RegExp][] = [
  ['before all of the source', revision(INT64_MIN, 0), /revision 0 of plant -9223372036854775808, which/],
  ['between two', revision(5n), /revision 1 of plant 5, which the source does not/],
  ['that a double takes for its neighbour', revision(2n ** 53n + 2n), /plant 9007199254740994, which/],
  ['behind all', revision(INT64_MAX, 2), /revision 2 of plant 9223372036854775807, which/],
  ['with another revision', revision(-1n, 3, 'again'), /revision 3 of plant -1, which/],
  ['with another name', revision(-1n, 2, 'Again'), /revision 2 of plant -1 otherwise/],
  ['with another tag', revision(2n ** 53n + 1n, 1, 'neighbour', 'Tagged'), /otherwise/],
  ['without its tag', revision(-1n, 10, 'at last'), /revision 10 of plant -1 otherwise/],
  ['with a tag of its own', revision(-1n, 1, 'plant -1', ''), /otherwise/],
  ['of another time', { ...revision(-1n), recordedAt: 0 }, /otherwise/],
  ['of another token', { ...revision(-1n), recordedBy: 2 }, /otherwise/],
];

for (const [what, foreign, says] of REFUSED) {
  test(`a target is refused for a revision ${what}`, async () => {
    for (const target of [[foreign], placed(foreign)]) {
      await assert.rejects(missing(SOURCE, target), error => {
        assert.ok(error instanceof StoreRefused);
        assert.match(error.message, says);
        return true;
      });
    }
  });
}

/** The source with this one at its place, instead of the one with the same key. */
function placed(foreign: PlantRevision): PlantRevision[] {
  const isSame = ({ plant, revision }: PlantRevision): boolean =>
    plant.id === foreign.plant.id && revision === foreign.revision;
  return [...SOURCE.filter(each => !isSame(each)), foreign].sort((a, b) =>
    a.plant.id === b.plant.id ? a.revision - b.revision : a.plant.id < b.plant.id ? -1 : 1,
  );
}

test('both sides are let go of when whoever asks has seen enough, and when the source fails', async () => {
  const closed: string[] = [];
  async function* watched(name: string, revisions: PlantRevision[]): AsyncIterable<PlantRevision> {
    try {
      yield* revisions;
      if (name === 'failing') throw new Error('the source failed');
    } finally {
      closed.push(name);
    }
  }
  for await (const _ of missingRevisions(watched('source', SOURCE), watched('target', SOURCE.slice(3))))
    break;
  assert.deepEqual(closed, ['source', 'target']);
  await assert.rejects(
    Array.fromAsync(missingRevisions(watched('failing', SOURCE), watched('other target', SOURCE.slice(6)))),
    /the source failed/,
  );
  assert.deepEqual(closed.slice(2).sort(), ['failing', 'other target']);
});
