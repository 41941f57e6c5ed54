import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

/** Makes a folder for the tests of a file, which is removed after the last of them. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-test-'));
  after(() => rmSync(folder, { recursive: true }));
  return folder;
}
