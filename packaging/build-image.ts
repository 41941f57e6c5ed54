/**
 * Builds a container image of the executable and the system libraries that it loads, as an archive
 * for `docker load` and `podman load`. It needs neither Docker nor a registry, but Debian or
 * Ubuntu. The same commit gives the same bytes on the same system.
 *
 *   npm run build:image
 *
 * Unpacked, the archive is an OCI image layout
 * (https://github.com/opencontainers/image-spec/blob/main/image-layout.md). Older versions of
 * Docker read manifest.json instead, which names the same files.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import packageJson from '../package.json' with { type: 'json' };
import { billOfMaterials } from './bill-of-materials.ts';
import { bundleProgram } from './program-bundle.ts';
import { systemLibraries } from './system-libraries.ts';
import { type TarEntry, tar } from './tar.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** OCI images use the names of Go. */
const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch;
/** No user of a common system has this number. */
const USER = 65_532;
const PROGRAM = '/usr/local/bin/plant-store';
const DATA = '/data';
const DOCUMENTS = `usr/share/doc/${packageJson.name}`;

const { version, description, license } = packageJson;
const [folder = join(ROOT, 'executable')] = process.argv.slice(2);
const { seconds, revision } = commit();
const createdAt = new Date(seconds * 1_000).toISOString();

const libraries = systemLibraries(join(folder, 'plant-store'));
const sbom = billOfMaterials((await bundleProgram()).packages, libraries.packages, createdAt);
const layer = tar(rootFiles(), seconds);

const blobs: TarEntry[] = [];
const config = addBlob('application/vnd.oci.image.config.v1+json', {
  created: createdAt,
  architecture: ARCHITECTURE,
  os: 'linux',
  config: {
    User: `${USER}:${USER}`,
    ExposedPorts: { '8080/tcp': {}, '8081/tcp': {} },
    Env: [
      'PATH=/usr/local/bin',
      `PLANT_STORE_DATABASE=sqlite:${DATA}/plant-store.db`,
      // Other containers and published ports reach only these addresses.
      'PLANT_STORE_LISTEN=0.0.0.0:8080',
      'PLANT_STORE_OPS=0.0.0.0:8081',
      // No other folder is writable.
      `SQLITE_TMPDIR=${DATA}`,
    ],
    Entrypoint: [PROGRAM],
    Cmd: ['serve'],
    Volumes: { [DATA]: {} },
    Labels: {
      'org.opencontainers.image.title': packageJson.name,
      'org.opencontainers.image.description': description,
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': license,
      ...(revision && { 'org.opencontainers.image.revision': revision }),
    },
    // An extension of Docker, which Podman knows too. The OCI specification has no health check.
    Healthcheck: { Test: ['CMD', PROGRAM, 'health'] },
  },
  rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
  history: [{ created: createdAt, created_by: 'packaging/build-image.ts' }],
});
const compressed = addBlob('application/vnd.oci.image.layer.v1.tar+gzip', gzipSync(layer));
const mediaType = 'application/vnd.oci.image.manifest.v1+json';
const manifest = addBlob(mediaType, { schemaVersion: 2, mediaType, config, layers: [compressed] });

// With the host localhost, no program looks up this name in a public registry.
const name = `localhost/${packageJson.name}:${version}`;
const annotations = { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': version };
const files = {
  'oci-layout': { imageLayoutVersion: '1.0.0' },
  'index.json': { schemaVersion: 2, manifests: [{ ...manifest, annotations }] },
  'manifest.json': [{ Config: pathOf(config), RepoTags: [name], Layers: [pathOf(compressed)] }],
};
const archive = join(folder, `plant-store-${version}-linux-${ARCHITECTURE}-image.tar`);
const described = Object.entries(files).map(([path, value]) => ({ path, content: JSON.stringify(value) }));
writeFileSync(archive, tar([...blobs, ...described], seconds));
writeFileSync(archive.replace('.tar', '.cdx.json'), sbom);
const [packed, unpacked] = [compressed.size, layer.length].map(bytes => Math.round(bytes / 1_000_000));
console.error(`${archive}: ${name}, ${packed} MB, unpacked ${unpacked} MB`);

function rootFiles(): TarEntry[] {
  const read = (file: string): TarEntry => ({ path: file.slice(1), content: readFileSync(file) });
  return [
    { path: PROGRAM.slice(1), content: readFileSync(join(folder, 'plant-store')), mode: 0o755 },
    ...libraries.files.map(file => ({ ...read(file), mode: 0o755 })),
    { path: `${DATA.slice(1)}/`, mode: 0o700, owner: USER },
    { path: 'etc/passwd', content: `plant-store:x:${USER}:${USER}::${DATA}:/nonexistent\n` },
    { path: 'etc/group', content: `plant-store:x:${USER}:\n` },
    // Without this, glibc asks a DNS server before it reads /etc/hosts, which has localhost.
    { path: 'etc/nsswitch.conf', content: 'hosts: files dns\n' },
    { path: `${DOCUMENTS}/LICENSE`, content: readFileSync(join(ROOT, 'LICENSE')) },
    {
      path: `${DOCUMENTS}/THIRD-PARTY-LICENSES.txt`,
      content: readFileSync(join(folder, 'THIRD-PARTY-LICENSES.txt')),
    },
    { path: `${DOCUMENTS}/sbom.cdx.json`, content: sbom },
    ...libraries.packages.map(each => ({
      path: `usr/share/doc/${each.name}/copyright`,
      content: each.copyright,
    })),
    ...libraries.commonLicenses.map(read),
  ];
}

/** A descriptor (https://github.com/opencontainers/image-spec/blob/main/descriptor.md). */
interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

/** @param value bytes, or a value for JSON */
function addBlob(mediaType: string, value: Uint8Array | object): Descriptor {
  const content = value instanceof Uint8Array ? value : Buffer.from(JSON.stringify(value));
  const descriptor = { mediaType, digest: `sha256:${sha256(content)}`, size: content.length };
  blobs.push({ path: pathOf(descriptor), content });
  return descriptor;
}

function pathOf({ digest }: Descriptor): string {
  return `blobs/${digest.replace(':', '/')}`;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The commit, and the time for all files (https://reproducible-builds.org/specs/source-date-epoch/). */
function commit(): { seconds: number; revision?: string } {
  const git = (...args: string[]): string => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout;
  const revision = git('describe', '--always', '--dirty', '--abbrev=40', '--exclude=*')?.trim();
  const seconds = process.env.SOURCE_DATE_EPOCH ?? git('log', '--max-count=1', '--format=%ct');
  return { seconds: Number(seconds), revision };
}
