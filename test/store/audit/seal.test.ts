import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { withChecksum } from '../../../src/store/audit/checksum.ts';
import {
  differenceOf,
  parseSeal,
  type Seal,
  SealDigest,
  sealLine,
  sealText,
} from '../../../src/store/audit/seal.ts';
import type { PlantRevision } from '../../../src/store/plant-store.ts';

const AT = 1_767_225_600_000;

function revision(id: bigint, number = 1, name = `plant ${id}`, tag?: string, recordedBy = 1): PlantRevision {
  const plant = tag === undefined ? { id, name } : { id, name, tag };
  return withChecksum({ plant, revision: number, recordedAt: AT, recordedBy });
}

function sealOf(revisions: PlantRevision[], earlier?: Seal): Seal {
  const digest = new SealDigest({ until: AT, earlier });
  for (const each of revisions) digest.add(each);
  return digest.seal();
}

test('the digest is the hash of the documented lines', () => {
  const lines: string[] = [];
  const revisions: PlantRevision[] = [];
  const add = (each: PlantRevision, line: string): void => {
    revisions.push(each);
    lines.push(`${line}\n`);
  };
  add(revision(-1n, 1, 'x'), '["-1",1,"x",null,1767225600000,1]');
  add(
    revision(2n ** 53n + 1n, 3, 'Ácer "x"\n', '', 2),
    '["9007199254740993",3,"Ácer \\"x\\"\\n","",1767225600000,2]',
  );
  // More rows than the digest hashes at once.
  for (let number = 1; number <= 5_000; number++) {
    add(revision(2n ** 60n, number, 'x', 't'), `["${2n ** 60n}",${number},"x","t",1767225600000,1]`);
  }
  const later = { ...revision(2n ** 61n), recordedAt: AT + 1 };
  const { marks, ...seal } = sealOf([...revisions, later]);
  const digest = createHash('sha256').update(lines.join('')).digest('hex');
  assert.deepEqual(seal, { until: AT, plants: 3, revisions: 5_002, digest, newest: undefined });
  assert.deepEqual(
    marks.map(({ id }) => id),
    [-1n, 2n ** 53n + 1n],
  );
  const line = `plant-store seal 1 2026-01-01T00:00:00.000Z 3 plants 5002 revisions sha256:${digest}`;
  assert.equal(sealLine({ ...seal, marks }), line);
  assert.deepEqual(parseSeal(sealText({ ...seal, marks })), { ...seal, marks });
  assert.deepEqual(parseSeal(` ${line.replaceAll(' ', '  ')}\r\n`), { ...seal, marks: [] });
});

test('the time is that of the newest revision, whatever time a damaged row has', () => {
  const digest = new SealDigest({ until: 1e300 });
  digest.add(revision(1n));
  assert.equal(digest.seal().until, AT);
});

test('the seal of a backup covers and lists the newest revisions, and no others of their times', () => {
  const [old, newest] = [revision(1n), revision(2n ** 60n, 7)];
  const [last, ahead] = [
    { ...newest, recordedAt: AT + 1 },
    { ...revision(3n), recordedAt: AT * 2 },
  ];
  const digest = new SealDigest({ until: AT, isListing: true });
  for (const each of [old, ahead, last]) digest.add(each);
  const seal = digest.seal();
  assert.deepEqual([seal.until, seal.revisions], [AT * 2, 3]);
  assert.deepEqual(parseSeal(sealText(seal)), seal);
  const since = { ...revision(2n), recordedAt: AT + 1 };
  assert.equal(differenceOf(seal, sealOf([old, since, ahead, last], seal)), undefined);
  for (const lost of [old, ahead, last]) {
    const left = [old, since, ahead, last].filter(each => each !== lost);
    assert.match(differenceOf(seal, sealOf(left, seal)) ?? '', /has 3 revisions, and the store has 2 /);
  }
  const many = new SealDigest({ until: 0, isListing: true });
  for (let number = 1; number <= 100_001; number++) many.add(revision(1n, number));
  const { revisions, newest: listed } = many.seal();
  assert.deepEqual([revisions, listed], [100_001, undefined]);
});
