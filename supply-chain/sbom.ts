/**
 * Writes the software bill of materials of what is installed to run, as CycloneDX: names, versions and hashes from the
 * lock file, without a network.
 *
 *   npm run sbom [-- FILE]
 */
import { writeFileSync } from 'node:fs';
import { npmOnProductionTree } from './production-tree.ts';

const [file = 'sbom.cdx.json'] = process.argv.slice(2);
const sbom = npmOnProductionTree(['sbom', '--sbom-format=cyclonedx', '--sbom-type=application']);
const { components } = JSON.parse(sbom) as { components: unknown[] };
writeFileSync(file, sbom);
console.error(`${components.length} packages; written to ${file}`);
