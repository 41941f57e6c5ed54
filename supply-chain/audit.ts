/**
 * Asks the registry what is known against the packages that are installed to run, and writes it to audit.json beside
 * this file, which a test compares with the lock file. Ends with 1 when one is of moderate severity or worse, or the
 * registry does not answer; then audit.json stays as it is.
 *
 *   npm run audit
 */
import { writeFileSync } from 'node:fs';
import { npmOnProductionTree, productionPackages } from './production-tree.ts';

/** What `npm audit --json` says, as far as it is read here. */
interface AuditReport {
  message?: string;
  vulnerabilities?: Record<string, { severity: string; range: string; via: (string | { url: string })[] }>;
}

const AUDIT_FILE = new URL('audit.json', import.meta.url);
/** The severities of npm below the bar. */
const TOLERATED = ['info', 'low'];

const { vulnerabilities, message } = JSON.parse(npmOnProductionTree(['audit', '--json'])) as AuditReport;
if (vulnerabilities === undefined) {
  console.error(
    `The registry does not answer audits (${message}); ask another one, with npm run audit --registry=URL.`,
  );
  process.exit(1);
}

const advisories = Object.entries(vulnerabilities).map(([name, { severity, range, via }]) => ({
  name,
  severity,
  range,
  urls: via.flatMap(each => (typeof each === 'string' ? [] : [each.url])),
}));
const audit = {
  auditedOn: new Date().toISOString().slice(0, 10),
  packages: productionPackages(),
  advisories,
};
writeFileSync(AUDIT_FILE, `${JSON.stringify(audit, null, 2)}\n`);
const grave = advisories.filter(({ severity }) => !TOLERATED.includes(severity));
for (const { name, severity, range, urls } of grave)
  console.error(`${name} ${range}: ${severity}; ${urls.join(' ')}`);
console.error(
  `${audit.packages.length} packages, ${grave.length} with an advisory of moderate severity or worse.`,
);
process.exit(grave.length === 0 ? 0 : 1);
