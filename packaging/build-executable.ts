/**
 * Builds one file that runs without Node and npm: this Node with the whole program in it, for the system that it is built on
 * (https://nodejs.org/api/single-executable-applications.html). The licences of what is in it come beside it.
 *
 *   npm run build:executable [-- FOLDER]
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleProgram } from './program-bundle.ts';
import { thirdPartyLicenses } from './third-party-licenses.ts';

const [folder = fileURLToPath(new URL('../executable', import.meta.url))] = process.argv.slice(2);
const executable = resolve(folder, process.platform === 'win32' ? 'plant-store.exe' : 'plant-store');

const { code, packages } = await bundleProgram();
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'THIRD-PARTY-LICENSES.txt'), thirdPartyLicenses(packages));

const workshop = mkdtempSync(join(tmpdir(), 'plant-store-executable-'));
try {
  // The executable keeps this name, and is to be the same wherever it is built: so the name is no whole path.
  const configuration = {
    main: 'plant-store.js',
    mainFormat: 'module',
    output: executable,
    disableExperimentalSEAWarning: true,
    // SIGUSR1 would open a debugger port.
    execArgv: ['--disable-sigusr1'],
    // What V8 has compiled, which takes a sixth off the work of a start.
    useCodeCache: true,
  };
  writeFileSync(join(workshop, configuration.main), code);
  writeFileSync(join(workshop, 'configuration.json'), JSON.stringify(configuration));
  // Without --predictable V8 compiles in another order each time.
  const flags = ['--predictable', '--build-sea', 'configuration.json'];
  execFileSync(process.execPath, flags, { cwd: workshop, stdio: 'pipe' });
} finally {
  rmSync(workshop, { recursive: true });
}
const megabytes = Math.round(statSync(executable).size / 1_000_000);
console.error(`${executable}: ${megabytes} MB, with ${packages.length} packages`);
