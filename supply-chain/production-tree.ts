import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

interface Manifest {
  devDependencies?: Record<string, string>;
}

interface LockFile {
  /** By their paths; that of this package is empty. */
  packages: Record<string, { version: string; dev?: boolean; link?: boolean } & Manifest>;
}

/** The packages that are installed to run, each as `name@version`, in the order of names. */
export function productionPackages(): string[] {
  const marker = 'node_modules/';
  const installed = Object.entries(productionLockFile().packages)
    .filter(([path]) => path !== '')
    .map(([path, { version }]) => `${path.slice(path.lastIndexOf(marker) + marker.length)}@${version}`);
  return [...new Set(installed)].sort();
}

/**
 * Runs npm on what is installed to run alone. Its own `--omit=dev` leaves out of an SBOM what is needed both to run and to
 * develop.
 *
 * @returns what it wrote to stdout, also when it failed
 * @throws when it cannot be started
 */
export function npmOnProductionTree(args: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-packages-'));
  try {
    const manifest: Manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    delete manifest.devDependencies;
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(productionLockFile()));
    const { stdout, error } = spawnSync('npm', [...args, '--package-lock-only'], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    if (error !== undefined) throw error;
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The lock file without what is needed to develop alone. */
export function productionLockFile(): LockFile {
  const lockFile: LockFile = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  delete lockFile.packages['']?.devDependencies;
  for (const [path, { dev, link }] of Object.entries(lockFile.packages)) {
    // A link to a folder of ours has no mark of its own; none is needed to run.
    if (dev || link) delete lockFile.packages[path];
  }
  return lockFile;
}
