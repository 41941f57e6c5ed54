import { cpSync } from 'node:fs';
import { resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
/** Installed packages, build results and data. */
const NOT_COPIED =
  /^(?:(?:test\/|bench\/|packaging\/compiler\/)?node_modules|\.git|dist|data|executable)(?:\/|$)/;

/** Copies this checkout without its packages. A file keeps the time of its last change. */
export function copyCheckout(folder: string): void {
  const filter = (path: string): boolean => !NOT_COPIED.test(path.slice(ROOT.length + 1));
  cpSync(ROOT, folder, { recursive: true, filter, preserveTimestamps: true });
}
