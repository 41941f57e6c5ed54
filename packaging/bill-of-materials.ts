import { readFileSync } from 'node:fs';
import packageJson from '../package.json' with { type: 'json' };
import type { SystemPackage } from './system-libraries.ts';
import { manifestOf } from './third-party-licenses.ts';

/** Numbers in `process.versions` of interfaces, not of software. */
const INTERFACES = ['node', 'modules', 'napi'];

/**
 * The software in an image, as a CycloneDX document (https://cyclonedx.org/docs/1.6/json/).
 *
 * @param folders the packages of npm, relative to the root of the repository
 * @param createdAt ISO 8601
 */
export function billOfMaterials(
  folders: readonly string[],
  systemPackages: readonly SystemPackage[],
  createdAt: string,
): string {
  const { name, version, license } = packageJson;
  const npm = folders.map(manifestOf).map(({ name, version, license }) => ({
    ...component(name, version, `pkg:npm/${name.replace('@', '%40')}@${version}`),
    licenses: [{ expression: license }],
  }));
  const { node, ...parts } = process.versions;
  const runtime = {
    ...component('node', node, `pkg:generic/node@${node}`),
    cpe: `cpe:2.3:a:nodejs:node.js:${node}:*:*:*:*:*:*:*`,
    licenses: [{ expression: 'MIT' }],
    components: Object.entries(parts)
      .filter(([part]) => !INTERFACES.includes(part))
      .map(([part, version]) => ({ type: 'library', name: part, version })),
  };
  const system = systemPackages.map(({ name, version, architecture }) => ({
    ...component(
      name,
      version,
      `pkg:deb/${distribution()}/${name}@${encodeURIComponent(version)}?arch=${architecture}`,
    ),
    licenses: [{ license: { name: `see /usr/share/doc/${name}/copyright` } }],
  }));
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: createdAt,
      component: {
        ...component(name, version, `pkg:npm/${name}@${version}`),
        type: 'application',
        licenses: [{ expression: license }],
      },
    },
    components: [...npm, runtime, ...system],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function component(name: string, version: string, purl: string) {
  return { type: 'library', 'bom-ref': purl, name, version, purl };
}

function distribution(): string {
  return /^ID=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))![1]!;
}
