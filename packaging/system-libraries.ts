import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** A package of Debian or Ubuntu. */
export interface SystemPackage {
  name: string;
  version: string;
  architecture: string;
  /** The text of its licences. */
  copyright: string;
}

export interface SystemLibraries {
  /** Paths as the executable names them. A path may be a link. */
  files: string[];
  /** The packages of the files, sorted. */
  packages: SystemPackage[];
  /** The texts that the licences refer to. */
  commonLicenses: string[];
}

/**
 * Finds the shared libraries that an executable loads on this system, and their packages.
 *
 * @throws if this is not Debian or Ubuntu, or if a package names no licence
 */
export function systemLibraries(executable: string): SystemLibraries {
  const loaded = output('ldd', executable);
  const files = [...loaded.matchAll(/(\/\S+) \(0x/g)].map(([, file]) => file!);
  // The executable names files below /lib. Their package may name them below /usr/lib.
  const names = files.map(file => output('dpkg-query', '--search', `*${file}`).split(':')[0]!);
  const packages = [...new Set(names)].sort().map(systemPackage);
  const referred = packages.flatMap(({ copyright }) =>
    [...copyright.matchAll(/\/usr\/share\/common-licenses\/[\w.-]*\w/g)].map(([file]) => file),
  );
  return { files, packages, commonLicenses: [...new Set(referred)].filter(file => existsSync(file)) };
}

function systemPackage(name: string): SystemPackage {
  const fields = output('dpkg-query', '--show', `--showformat=\${Version} \${Architecture}`, name);
  const [version = '', architecture = ''] = fields.split(' ');
  const copyright = readFileSync(`/usr/share/doc/${name}/copyright`, 'utf8');
  return { name, version, architecture, copyright };
}

function output(file: string, ...args: string[]): string {
  return execFileSync(file, args, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } });
}
