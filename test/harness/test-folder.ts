import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

/** Makes a folder that is removed after the last test of the file. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-test-'));
  after(() => rmSync(folder, { recursive: true }));
  return folder;
}
