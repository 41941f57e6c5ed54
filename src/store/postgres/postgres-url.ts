import { StoreRejected } from '../plant-store.ts';

/** Timeout to connect to one host and to authenticate. The default of `connect_timeout`. */
export const CONNECT_TIMEOUT_MS = 1_500;
/** Its default for the first connection of a service, which otherwise would not start. */
export const START_TIMEOUT_MS = 60_000;

/** The values of sslmode, with their meaning in libpq (section 34.19 of its manual). */
export const TLS_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
export type TlsMode = (typeof TLS_MODES)[number];

/** The value of sslrootcert for the root certificates that the operating system trusts. */
export const SYSTEM_ROOTS = 'system';

export interface HostAddress {
  /** A name, an IP address, or the absolute path of the directory of a Unix socket. */
  host: string;
  port: number;
}

export interface PostgresAddress {
  /** At least one. */
  hosts: HostAddress[];
  database: string;
  user: string;
  /** Undefined: it comes from PGPASSFILE or ~/.pgpass, if the server requires one. */
  password: string | undefined;
  tlsMode: TlsMode;
  /** The path of a PEM file, as the next two are, or {@link SYSTEM_ROOTS}. */
  rootCertificateFile: string | undefined;
  certificateFile: string | undefined;
  keyFile: string | undefined;
  applicationName: string;
  /** Undefined: not given. */
  connectTimeoutMs: number | undefined;
  /** Server settings for this connection, as `-c name=value`. */
  options: string | undefined;
}

/** The supported parameters of libpq and their values; docs/scale.md describes them. */
const PARAMETERS = {
  host: [/./, 'a host'],
  port: [/^[1-9][0-9]{0,4}$/, 'a number from 1 to 65535'],
  password: [/^/, 'a password'],
  sslmode: [new RegExp(`^(?:${TLS_MODES.join('|')})$`), `one of ${TLS_MODES.join(', ')}`],
  sslrootcert: [/./, 'a file or system'],
  sslcert: [/./, 'a file'],
  sslkey: [/./, 'a file'],
  connect_timeout: [/^[1-9][0-9]{0,2}$/, 'a whole number of seconds from 1 to 999'],
  options: [/^/, 'server settings'],
  application_name: [/^/, 'a name'],
  target_session_attrs: [/^read-write$/, 'read-write, since a plant store needs a host that accepts writes'],
} as const;
type ParameterName = keyof typeof PARAMETERS;
const PARAMETER_NAMES = Object.keys(PARAMETERS) as ParameterName[];

export const POSTGRES_SCHEME = /^postgres(?:ql)?:\/\//;
const FORM = 'postgres://USER@HOST:PORT/DATABASE';
const PORT_DEFAULT = '5432';
/** No `@` may follow the hosts: the rest of a password with an unencoded `/` would be shown. */
const PARTS = /^(?:([^/?]*)@)?([^@/?]*)(?:\/([^@/?]*))?(?:\?([^@]*))?$/s;
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]*))(?::([0-9]{1,5}))?$/;

/**
 * Parses a connection URI of libpq (section 34.1.1.2 of its manual):
 * `postgres://user:password@host1:5432,host2:5432/database?sslmode=verify-full`.
 *
 * @throws {StoreRejected} when it is invalid; the message repeats no part that may be a password
 */
export function postgresAddressOf(text: string): PostgresAddress {
  const parts = PARTS.exec(text.replace(POSTGRES_SCHEME, ''));
  if (parts === null) {
    throw rejected(
      `is not ${FORM}; write @, /, ? and % within the user, the password or a parameter as %40, %2F, %3F and %25`,
    );
  }
  const [, credentials = '', hosts = '', database = '', query = ''] = parts;
  const [, user = '', password = ''] = /^([^:]*)(?::(.*))?$/s.exec(credentials)!;
  if (user.includes('@')) throw rejected('has an @ in the user; write it as %40');
  const given = parametersOf(query);
  const address: PostgresAddress = {
    hosts: hostsOf(
      hosts === '' ? (given.host ?? 'localhost') : decoded(hosts, 'the host'),
      given.port ?? PORT_DEFAULT,
    ),
    database: decoded(database, 'the database'),
    user: decoded(user, 'the user'),
    password: decoded(password, 'the password') || given.password || undefined,
    tlsMode: (given.sslmode ?? (given.sslrootcert === SYSTEM_ROOTS ? 'verify-full' : 'prefer')) as TlsMode,
    rootCertificateFile: given.sslrootcert,
    certificateFile: given.sslcert,
    keyFile: given.sslkey,
    applicationName: given.application_name ?? 'plant-store',
    connectTimeoutMs: given.connect_timeout ? Number(given.connect_timeout) * 1_000 : undefined,
    options: given.options,
  };
  checkAddress(address);
  return address;
}

/** The address for logs and messages, without password and parameters. */
export function shownPostgresAddress({ user, hosts, database }: PostgresAddress): string {
  const shownHosts = hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`);
  return `postgres://${user}@${shownHosts.join(',')}/${database}`;
}

function parametersOf(query: string): Partial<Record<ParameterName, string>> {
  const given: Partial<Record<ParameterName, string>> = {};
  for (const [index, pair] of query.split('&').filter(Boolean).entries()) {
    const [, encodedName = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(pair)!;
    const text = decoded(encodedName, 'the name of a parameter');
    const name = PARAMETER_NAMES.find(each => each === text);
    if (name === undefined) {
      // The message does not repeat it: after an unencoded ? or & it may be the rest of a password.
      const known = PARAMETER_NAMES.join(', ');
      throw rejected(`has an unknown parameter, number ${index + 1}; known are ${known}`);
    }
    // A second value is accepted after an empty one, such as an empty password.
    if (given[name]) throw rejected(`has the parameter ${name} twice`);
    const [pattern, meaning] = PARAMETERS[name];
    const decodedValue = decoded(value, `the parameter ${name}`);
    if (!pattern.test(decodedValue)) throw rejected(`has an invalid ${name}; it must be ${meaning}`);
    given[name] = decodedValue;
  }
  return given;
}

/** @param portDefault for hosts without a port, and for directories of Unix sockets */
function hostsOf(text: string, portDefault: string): HostAddress[] {
  return text.split(',').map(each => {
    const [, literal, name, port = portDefault] = each.startsWith('/') ? [] : (HOST.exec(each) ?? []);
    const host = each.startsWith('/') ? each : (literal ?? name ?? '');
    if (host === '' || !PARAMETERS.port[0].test(port) || Number(port) > 65_535) {
      // The message does not repeat it: a password with an unencoded slash ends up here.
      throw rejected('has an invalid host; write HOST:PORT,HOST:PORT, and a / in user or password as %2F');
    }
    return { host, port: Number(port) };
  });
}

function checkAddress(address: PostgresAddress): void {
  const { tlsMode, rootCertificateFile, certificateFile, keyFile } = address;
  if (address.database === '') throw rejected(`names no database; write ${FORM}`);
  if (address.user === '') throw rejected(`names no user; write ${FORM}`);
  if (rootCertificateFile === SYSTEM_ROOTS && tlsMode !== 'verify-full') {
    // Anyone can get a trusted certificate, so the host name must be checked, as in libpq.
    throw rejected('has sslrootcert=system with a weaker sslmode than verify-full; use that');
  }
  if (tlsMode.startsWith('verify-') && rootCertificateFile === undefined) {
    throw rejected(`has sslmode=${tlsMode} without sslrootcert; name a file with it, or \`system\``);
  }
  if ((certificateFile === undefined) !== (keyFile === undefined)) {
    throw rejected('has one of sslcert and sslkey without the other');
  }
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw rejected(
      `has a % in ${what} that is not followed by two hexadecimal digits of UTF-8; write % as %25`,
    );
  }
}

function rejected(what: string): StoreRejected {
  return new StoreRejected(`the postgres:// URL of the database ${what}`);
}
