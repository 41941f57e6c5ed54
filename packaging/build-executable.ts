/**
 * Builds an executable that contains Node and the program, for the system of the build
 * (https://nodejs.org/api/single-executable-applications.html). Writes the licences of its parts
 * beside it.
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

const temporary = mkdtempSync(join(tmpdir(), 'plant-store-executable-'));
try {
  // The executable contains this name. A full path would make it differ between build folders.
  const configuration = {
    main: 'plant-store.js',
    mainFormat: 'module',
    output: executable,
    disableExperimentalSEAWarning: true,
    // SIGUSR1 would open a debugger port.
    execArgv: ['--disable-sigusr1'],
    // Includes code that V8 has compiled, which saves a sixth of the CPU time of a start.
    useCodeCache: true,
  };
  writeFileSync(join(temporary, configuration.main), code);
  writeFileSync(join(temporary, 'configuration.json'), JSON.stringify(configuration));
  // Without --predictable, V8 compiles in a different order in each build.
  const flags = ['--predictable', '--build-sea', 'configuration.json'];
  execFileSync(process.execPath, flags, { cwd: temporary, stdio: 'pipe' });
} finally {
  rmSync(temporary, { recursive: true });
}
const megabytes = Math.round(statSync(executable).size / 1_000_000);
console.error(`${executable}: ${megabytes} MB, with ${packages.length} packages`);
