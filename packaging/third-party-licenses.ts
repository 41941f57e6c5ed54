import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Files in which a package says what its licence asks to be repeated. */
const NOTICE = /^(?:licen[cs]e|copying|notice)/i;

/** What is read of a package.json. */
interface Manifest {
  name: string;
  version: string;
  license?: string;
  author?: string | { name: string };
}

/**
 * The licences and notices of what an executable holds beside our own code: Node, with all that Node is made of, and the
 * packages.
 *
 * @param packages their folders, from the root of the repository
 * @throws when a package does not say its licence, or the Node that runs here lies apart from its own
 */
export function thirdPartyLicenses(packages: readonly string[]): string {
  const node = `Node.js ${process.versions.node}\n\n${readFileSync(nodeLicenseFile(), 'utf8').trim()}\n`;
  return [node, ...packages.map(licenseOf)].join(`\n${'='.repeat(80)}\n\n`);
}

function licenseOf(folder: string): string {
  const path = join(ROOT, folder);
  const { name, version, license, author } = JSON.parse(
    readFileSync(join(path, 'package.json'), 'utf8'),
  ) as Manifest;
  if (license === undefined)
    throw new Error(`${folder} does not say its licence; look it up, or do without it`);
  const by = typeof author === 'object' ? author.name : author;
  const texts = readdirSync(path)
    .filter(file => NOTICE.test(file))
    .sort()
    .map(file => readFileSync(join(path, file), 'utf8').trim());
  const said = texts.length > 0 ? texts : [`No text of the licence comes with it. Its author is ${by}.`];
  return `${name} ${version} (${license})\n\n${said.join('\n\n')}\n`;
}

/** As Node's own archives have it, and as the npm package `node` has it. */
function nodeLicenseFile(): string {
  const home = dirname(dirname(process.execPath));
  const inPackage = join(home, 'node_modules', `node-${process.platform}-${process.arch}`);
  const file = [home, inPackage].map(folder => join(folder, 'LICENSE')).find(each => existsSync(each));
  if (file === undefined)
    throw new Error(`no LICENSE lies beside ${process.execPath}; run this with the Node that npm ci brings`);
  return file;
}
