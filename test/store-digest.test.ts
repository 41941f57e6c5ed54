import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { StoredToken } from '../src/contract/stored-token.ts';
import { StoreDigest } from '../src/store/copy/store-digest.ts';
import type { PlantRevision } from '../src/store/plant-store.ts';

const REVISION: PlantRevision = {
  plant: { id: 9007199254740993n, name: 'Ácer "x"\n', tag: '' },
  revision: 1,
  recordedAt: 1_767_225_600_000,
  recordedBy: 1,
};
const TOKEN: StoredToken = {
  id: 1,
  hash: 'ab'.repeat(32),
  label: 'first',
  createdAt: 1,
  expiresAt: 2,
  revokedAt: 3,
  lastUsedDay: '2026-01-01',
  changeNumber: 4,
};

function digestOf(revisions: PlantRevision[], tokens: StoredToken[] = []): string {
  const digest = new StoreDigest();
  for (const revision of revisions) digest.addRevision(revision);
  for (const token of tokens) digest.addToken(token);
  return digest.summary().digest;
}

test('the digest is the one of the lines that its description names', () => {
  const withoutTag = { ...REVISION, plant: { id: -1n, name: 'x' } };
  const lines = [
    '["plant","-1",1,"x",null,1767225600000,1]\n',
    '["plant","9007199254740993",1,"Ácer \\"x\\"\\n","",1767225600000,1]\n',
    `["token",1,"${'ab'.repeat(32)}","first",1,2,3,"2026-01-01"]\n`,
  ];
  const expected = createHash('sha256').update(lines.join(''), 'utf8').digest('hex');
  assert.equal(digestOf([withoutTag, REVISION], [TOKEN]), expected);
});

test('any other value of any column, and no other count of changes, makes another digest', () => {
  const revisions: PlantRevision[] = [
    REVISION,
    { ...REVISION, plant: { ...REVISION.plant, id: 9007199254740992n } },
    { ...REVISION, plant: { ...REVISION.plant, name: 'Ácer "x"' } },
    { ...REVISION, plant: { ...REVISION.plant, tag: 'null' } },
    { ...REVISION, plant: { id: REVISION.plant.id, name: REVISION.plant.name } },
    { ...REVISION, revision: 2 },
    { ...REVISION, recordedAt: 0 },
    { ...REVISION, recordedBy: 2 },
  ];
  assert.equal(new Set(revisions.map(each => digestOf([each]))).size, revisions.length);
  const tokens: StoredToken[] = [
    TOKEN,
    { ...TOKEN, id: 2 },
    { ...TOKEN, hash: 'cd'.repeat(32) },
    { ...TOKEN, label: 'second' },
    { ...TOKEN, createdAt: 0 },
    { ...TOKEN, expiresAt: null },
    { ...TOKEN, revokedAt: null },
    { ...TOKEN, lastUsedDay: null },
  ];
  assert.equal(new Set(tokens.map(each => digestOf([], [each]))).size, tokens.length);
  assert.equal(digestOf([], [TOKEN]), digestOf([], [{ ...TOKEN, changeNumber: 5 }]));
});

test('many rows are digested as one text, and counted', () => {
  const digest = new StoreDigest();
  const hash = createHash('sha256');
  for (let id = 0n; id < 5_000n; id++) {
    for (const revision of [1, 2]) {
      digest.addRevision({ ...REVISION, plant: { id, name: 'x' }, revision });
      hash.update(`["plant","${id}",${revision},"x",null,1767225600000,1]\n`);
    }
  }
  assert.deepEqual(digest.summary(), {
    revisions: 10_000,
    plants: 5_000,
    tokens: 0,
    digest: hash.digest('hex'),
  });
});
