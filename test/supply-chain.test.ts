import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import audit from '../supply-chain/audit.json' with { type: 'json' };
import { productionPackages } from '../supply-chain/production-tree.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LOCKED = productionPackages();
const { advisories } = audit as { advisories: { name: string; severity: string }[] };

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'plant-store-supply-'));
});
after(() => rmSync(folder, { recursive: true }));

test('what is installed to run is what was audited; npm run audit renews the list', () => {
  assert.deepEqual(LOCKED, audit.packages);
});

test('nothing that is installed to run has an advisory of moderate severity or worse', () => {
  const grave = advisories.filter(({ severity }) => !['info', 'low'].includes(severity));
  assert.deepEqual(grave, []);
});

test('npm run sbom lists every package that is installed to run, without a network', () => {
  const file = join(folder, 'sbom.cdx.json');
  execFileSync('npm', ['run', '--silent', 'sbom', '--', file], {
    cwd: ROOT,
    env: { ...process.env, npm_config_offline: 'true' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const { bomFormat, metadata, components } = JSON.parse(readFileSync(file, 'utf8')) as {
    bomFormat: string;
    metadata: { component: { type: string; purl: string } };
    components: { purl: string; hashes?: { alg: string; content: string }[] }[];
  };
  assert.equal(bomFormat, 'CycloneDX');
  assert.equal(metadata.component.type, 'application');
  assert.match(metadata.component.purl, /^pkg:npm\/plant-store@/);
  const listed = components.map(({ purl }) => decodeURIComponent(purl).replace('pkg:npm/', '')).sort();
  assert.deepEqual([...new Set(listed)], LOCKED);
  for (const { purl, hashes } of components)
    assert.ok(
      hashes?.some(({ alg, content }) => alg === 'SHA-512' && content.length === 128),
      purl,
    );
});
