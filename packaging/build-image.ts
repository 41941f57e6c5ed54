/**
 * Fills a folder from which `docker build` and `buildah bud` make a container image: a Dockerfile,
 * the executable, the system libraries that it loads, and all licences. Needs Debian or Ubuntu.
 * Where buildah is installed, it also builds the image, and writes it as an archive for
 * `docker load` and `podman load`. The same commit gives the same archive on the same system.
 *
 *   npm run build:image
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import packageJson from '../package.json' with { type: 'json' };
import { billOfMaterials } from './bill-of-materials.ts';
import { bundleProgram } from './program-bundle.ts';
import { systemLibraries } from './system-libraries.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** The names of Go, which container images use. */
const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch;

const { name, version, description, license } = packageJson;
const [folder = join(ROOT, 'executable')] = process.argv.slice(2);
const image = join(folder, 'image');
/** With the host localhost, no program looks up this name in a public registry. */
const tag = `localhost/${name}:${version}`;
const archive = join(folder, `${name}-${version}-linux-${ARCHITECTURE}-image.tar`);
const { seconds, revision } = commit();
const sbom = await fillFolder();
if (spawnSync('buildah', ['--version']).status === 0) {
  writeArchive();
  writeFileSync(archive.replace('.tar', '.cdx.json'), sbom);
  console.error(`${archive}: ${tag}`);
} else console.error(`no archive without buildah; with Docker: docker build --tag ${tag} ${image}`);

/** @returns the bill of materials */
async function fillFolder(): Promise<string> {
  // Folders have the same modes on every machine.
  process.umask(0o022);
  rmSync(image, { recursive: true, force: true });
  mkdirSync(join(image, 'owned/data'), { recursive: true });
  chmodSync(join(image, 'owned/data'), 0o700);

  const executable = join(folder, 'plant-store');
  const libraries = systemLibraries(executable);
  const { packages } = await bundleProgram();
  const bill = billOfMaterials(packages, libraries.packages, new Date(seconds * 1_000).toISOString());
  const documents = `/usr/share/doc/${name}`;
  addFile('/usr/local/bin/plant-store', executable, 0o755);
  for (const file of libraries.files) addFile(file, file, 0o755);
  for (const file of ['passwd', 'group', 'nsswitch.conf'])
    addFile(`/etc/${file}`, join(ROOT, 'packaging/image/etc', file));
  addFile(`${documents}/LICENSE`, join(ROOT, 'LICENSE'));
  addFile(`${documents}/THIRD-PARTY-LICENSES.txt`, join(folder, 'THIRD-PARTY-LICENSES.txt'));
  const licences = libraries.packages.map(each => `/usr/share/doc/${each.name}/copyright`);
  for (const file of [...licences, ...libraries.commonLicenses]) addFile(file, file);
  writeFileSync(join(image, 'root', documents, 'sbom.cdx.json'), bill, { mode: 0o644 });

  const labels = { title: name, description, version, licenses: license, revision };
  const lines = Object.entries(labels).map(
    ([label, value]) => `LABEL org.opencontainers.image.${label}=${JSON.stringify(value)}\n`,
  );
  const dockerfile = readFileSync(join(ROOT, 'packaging/image/Dockerfile'), 'utf8');
  writeFileSync(join(image, 'Dockerfile'), [dockerfile, ...lines].join(''));
  return bill;
}

/** @param path in the image */
function addFile(path: string, from: string, mode = 0o644): void {
  const file = join(image, 'root', path);
  mkdirSync(dirname(file), { recursive: true });
  copyFileSync(from, file);
  chmodSync(file, mode);
}

function writeArchive(): void {
  // A store of its own: an image of the user may have the same name.
  const store = mkdtempSync(join(tmpdir(), 'plant-store-image-'));
  const buildah = (...args: string[]): Buffer => {
    const options = ['--storage-driver', 'vfs', '--root', store, '--runroot', join(store, 'run')];
    return execFileSync('buildah', [...options, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  };
  try {
    const reproducible = ['--timestamp', `${seconds}`, '--identity-label=false', '--format', 'oci'];
    buildah('bud', '--isolation', 'chroot', ...reproducible, '--tag', tag, image);
    rmSync(archive, { force: true });
    buildah('push', tag, `docker-archive:${archive}:${tag}`);
    buildah('rmi', '--all', '--force');
  } finally {
    rmSync(store, { recursive: true, force: true });
  }
}

/** The commit, and the time for all files (https://reproducible-builds.org/specs/source-date-epoch/). */
function commit(): { seconds: number; revision: string } {
  const git = (...args: string[]): string => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout;
  const revision = git('describe', '--always', '--dirty', '--abbrev=40', '--exclude=*').trim();
  const seconds = process.env.SOURCE_DATE_EPOCH ?? git('log', '--max-count=1', '--format=%ct');
  return { seconds: Number(seconds), revision };
}
