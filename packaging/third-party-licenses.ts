import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Files with licences and notices, which must accompany copies of a package. */
const NOTICE = /^(?:licen[cs]e|copying|notice)/i;
const PREACT_LICENSE = new URL('preact-license.txt', import.meta.url);

/** The used members of a package.json. */
export interface Manifest {
  name: string;
  version: string;
  license: string;
  author?: string | { name: string };
}

/**
 * The licences and notices of the third-party code in an executable: Node with its parts, and
 * packages.
 *
 * @param packages their folders, relative to the root of the repository
 * @throws if a package does not name its licence, or the LICENSE file of Node is missing
 */
export function thirdPartyLicenses(packages: readonly string[]): string {
  const node = `Node.js ${process.versions.node}\n\n${readFileSync(nodeLicenseFile(), 'utf8').trim()}\n`;
  return [node, ...packages.map(licenseOf)].join(`\n${'='.repeat(80)}\n\n`);
}

/** @param folder of a package, relative to the root of the repository */
export function manifestOf(folder: string): Manifest {
  const manifest = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Partial<Manifest>;
  if (manifest.license === undefined)
    throw new Error(`${folder} does not name its licence; find out, or remove the package`);
  return manifest as Manifest;
}

function licenseOf(folder: string): string {
  const path = join(ROOT, folder);
  const { name, version, license, author } = manifestOf(folder);
  const by = typeof author === 'object' ? author.name : author;
  const texts = readdirSync(path)
    .filter(file => NOTICE.test(file))
    .sort()
    .map(file => readFileSync(join(path, file), 'utf8').trim());
  // Its file for browsers contains Preact, without the licence.
  if (name === 'htm') texts.push(`Preact\n\n${readFileSync(PREACT_LICENSE, 'utf8').trim()}`);
  const notices = texts.length > 0 ? texts : [`The package contains no licence text. Its author is ${by}.`];
  return `${name} ${version} (${license})\n\n${notices.join('\n\n')}\n`;
}

/** The LICENSE file of this Node, which is from an archive or from the npm package `node`. */
function nodeLicenseFile(): string {
  const home = dirname(dirname(process.execPath));
  const inPackage = join(home, 'node_modules', `node-${process.platform}-${process.arch}`);
  const file = [home, inPackage].map(folder => join(folder, 'LICENSE')).find(each => existsSync(each));
  if (file === undefined)
    throw new Error(`no LICENSE beside ${process.execPath}; use the Node that npm ci installs`);
  return file;
}
