import { readFileSync } from 'node:fs';
import packageJson from '../package.json' with { type: 'json' };
import type { SystemPackage } from './system-libraries.ts';
import { type Manifest, manifestOf } from './third-party-licenses.ts';

/** Members of `process.versions` that are versions of interfaces, not of software. */
const INTERFACES = ['modules', 'napi'];

/**
 * The software in an image, as a CycloneDX document (https://cyclonedx.org/docs/1.6/json/).
 *
 * @param folders the packages of npm, relative to the root of the repository
 * @param timestamp ISO 8601
 */
export function billOfMaterials(
  folders: readonly string[],
  systemPackages: readonly SystemPackage[],
  timestamp: string,
): string {
  const { node, ...parts } = process.versions;
  const runtime = {
    ...component('node', node, `pkg:generic/node@${node}`, { expression: 'MIT' }),
    cpe: `cpe:2.3:a:nodejs:node.js:${node}:*:*:*:*:*:*:*`,
    components: Object.entries(parts)
      .filter(([name]) => !INTERFACES.includes(name))
      .map(([name, version]) => ({ type: 'library', name, version })),
  };
  const [, system] = /^ID=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))!;
  const libraries = systemPackages.map(({ name, version, architecture }) => {
    const purl = `pkg:deb/${system}/${name}@${encodeURIComponent(version)}?arch=${architecture}`;
    return component(name, version, purl, { license: { name: `see /usr/share/doc/${name}/copyright` } });
  });
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { timestamp, component: { ...ofPackage(packageJson), type: 'application' } },
    components: [...folders.map(manifestOf).map(ofPackage), runtime, ...libraries],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function ofPackage({ name, version, license }: Manifest) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return component(name, version, purl, { expression: license });
}

function component(name: string, version: string, purl: string, licence: object) {
  return { type: 'library', 'bom-ref': purl, name, version, purl, licenses: [licence] };
}
